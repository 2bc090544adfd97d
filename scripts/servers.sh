# shellcheck shell=bash disable=SC2034,SC2154
# Sourced by the scripts beside it: starts Redis and PostgreSQL from Debian's binaries, on loopback, in a folder.
# Expects `set -euo pipefail`, $folder (absolute), and `launch NAME COMMAND...` of the script that sources it: it runs
# the command in the background, writes its output to $folder/NAME.log and its process id to $folder/NAME.pid. $guard
# is what it puts before a command; a change of user loses it, so it stands behind that once more.
# Nothing here may run in a subshell: a server belongs to the shell that started it. Results are in variables.

# A port of loopback that nobody listens on, in $port.
free_port() {
  port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
}

# require COMMAND PACKAGE
require() {
  if ! command -v "$1" >/dev/null; then
    echo "$1 is not installed. On Debian and Ubuntu: apt install $2" >&2
    exit 1
  fi
}

alive() {
  kill -0 "$1" 2>/dev/null
}

# wait_until SECONDS NAME COMMAND...: until COMMAND succeeds; NAME is the process that must live meanwhile.
wait_until() {
  local deadline=$((SECONDS + $1)) name=$2
  shift 2
  until alive "$(cat "$folder/$name.pid")" && "$@" >/dev/null 2>&1; do
    if ! alive "$(cat "$folder/$name.pid")" || [ $SECONDS -ge $deadline ]; then
      echo "$name did not start; the end of $folder/$name.log:" >&2
      tail -n 20 "$folder/$name.log" >&2
      exit 1
    fi
    sleep 0.1
  done
}

# stop_process NAME SIGNAL SECONDS: asks, waits, and then ends the whole process group.
stop_process() {
  local file=$folder/$1.pid pid deadline=$((SECONDS + $3))
  [ -f "$file" ] || return 0
  pid=$(cat "$file")
  kill "-$2" "$pid" 2>/dev/null || true
  while alive "$pid" && [ $SECONDS -lt $deadline ]; do sleep 0.05; done
  kill -KILL -- "-$pid" 2>/dev/null || true
  rm -f "$file"
}

# start_redis [OPTION...]: its address is in $redis_url.
start_redis() {
  require redis-server redis-server
  mkdir -p "$folder/redis"
  free_port
  redis_url=redis://127.0.0.1:$port/0
  launch redis redis-server --bind 127.0.0.1 --port "$port" --dir "$folder/redis" "$@"
  wait_until 10 redis redis-cli -h 127.0.0.1 -p "$port" ping
}

# start_postgres [-c SETTING=VALUE ...]: a database and a superuser "vimbank", no password; the URL is in $postgres_url.
start_postgres() {
  local data=$folder/postgres as=()
  find_postgres
  if [ "$(id -u)" = 0 ]; then
    # PostgreSQL refuses to run as root.
    as=(setpriv --reuid postgres --regid postgres --init-groups)
    if ! "${as[@]}" test -x "$folder"; then
      echo "The user postgres cannot enter $folder, and PostgreSQL does not run as root: choose another folder" >&2
      exit 1
    fi
  fi
  if [ ! -f "$data/PG_VERSION" ]; then
    mkdir -p "$data"
    chmod 700 "$data"
    if [ "$(id -u)" = 0 ]; then chown postgres "$data"; fi
    "${as[@]}" "$postgres_bin/initdb" --pgdata "$data" --username vimbank --auth trust --encoding UTF8 --locale C \
      --no-sync >"$folder/initdb.log" 2>&1 || { cat "$folder/initdb.log" >&2; exit 1; }
  fi
  free_port
  postgres_url=postgresql+psycopg://vimbank@127.0.0.1:$port/vimbank
  launch postgres "${as[@]}" "${guard[@]}" "$postgres_bin/postgres" -D "$data" -p "$port" -c listen_addresses=127.0.0.1 \
    -c unix_socket_directories= "$@"
  wait_until 30 postgres "$postgres_bin/pg_isready" -q -h 127.0.0.1 -p "$port" -U vimbank -d postgres
  if [ -z "$("$postgres_bin/psql" -h 127.0.0.1 -p "$port" -U vimbank -d postgres -Atc \
    "SELECT 1 FROM pg_database WHERE datname = 'vimbank'")" ]; then
    "$postgres_bin/createdb" -h 127.0.0.1 -p "$port" -U vimbank vimbank
  fi
}

# The folder of the newest PostgreSQL, in $postgres_bin; Debian keeps it off the path.
find_postgres() {
  local found
  found=$(find /usr/lib/postgresql/*/bin -name initdb 2>/dev/null | sort -V | tail -n 1) || true
  [ -n "$found" ] || found=$(command -v initdb) || true
  if [ -z "$found" ]; then
    echo "PostgreSQL is not installed. On Debian and Ubuntu: apt install postgresql" >&2
    exit 1
  fi
  postgres_bin=$(dirname "$(readlink -f "$found")")
}
