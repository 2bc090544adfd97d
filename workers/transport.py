"""How workers speak to Redis: as Kombu does, but a channel whose connection is lost keeps out of the way.

What becomes of a job that was delivered is decided by the store and its leases: ``requeue`` sends again what waits for
too long, and a second delivery is harmless. So a channel has nothing to save when its connection goes. Kombu would
try to, without a client, and the AttributeError ends the worker: each time that a job ends on a new connection, and
about every twentieth time that Redis goes away (case 124).
"""

from kombu.transport import redis

__all__ = ["Channel", "Transport"]


class Channel(redis.Channel):
    """Gives no message back when it closes, and says nothing of a message once it is closed."""

    do_restore = False

    def basic_ack(self, delivery_tag: str, multiple: bool = False) -> None:
        """The job has ended. On a lost connection nobody hears it: Redis may deliver the message once more."""
        if not self.closed:
            super().basic_ack(delivery_tag, multiple)  # type: ignore[no-untyped-call]

    def basic_reject(self, delivery_tag: str, requeue: bool = False) -> None:
        """The job is not done. As ``basic_ack``."""
        if not self.closed:
            super().basic_reject(delivery_tag, requeue)  # type: ignore[no-untyped-call]


class Transport(redis.Transport):
    """Kombu's transport with these channels."""

    Channel = Channel
