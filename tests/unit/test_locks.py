"""The read-write lock: readers together, a writer alone, and no writer starved."""

import threading

from vimbank.feed.locks import ReadWriteLock

PATIENCE_S = 10.0


def test_two_readers_hold_it_at_once() -> None:
    lock, together = ReadWriteLock(), threading.Barrier(2, timeout=PATIENCE_S)

    def read() -> None:
        with lock.reading():
            together.wait()

    threads = [threading.Thread(target=read) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert not any(thread.is_alive() for thread in threads)
    assert not together.broken


def test_a_writer_is_alone() -> None:
    lock = ReadWriteLock()
    value = 0

    def add() -> None:
        nonlocal value
        for _ in range(2_000):
            with lock.writing():
                seen = value
                value = seen + 1

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert value == 8_000


def test_a_waiting_writer_holds_new_readers_back() -> None:
    lock = ReadWriteLock()
    order: list[str] = []
    inside, leave = threading.Event(), threading.Event()

    def first_reader() -> None:
        with lock.reading():
            inside.set()
            leave.wait(PATIENCE_S)
            order.append("first reader")

    def writer() -> None:
        with lock.writing():
            order.append("writer")

    def second_reader() -> None:
        with lock.reading():
            order.append("second reader")

    threads = [threading.Thread(target=first_reader), threading.Thread(target=writer)]
    threads[0].start()
    inside.wait(PATIENCE_S)
    threads[1].start()
    while not lock.writer_waits:
        pass
    threads.append(threading.Thread(target=second_reader))
    threads[2].start()
    leave.set()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert order == ["first reader", "writer", "second reader"]


def test_an_error_inside_lets_go() -> None:
    lock = ReadWriteLock()
    for hold in (lock.reading, lock.writing):
        try:
            with hold():
                raise RuntimeError
        except RuntimeError:
            pass
    with lock.writing():
        pass
