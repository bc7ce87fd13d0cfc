#!/usr/bin/env bash
# Set up everything the tests need and run them all:  bash tests/all.sh [quick]
#
# quick leaves out the browser, the wheel, the coverage and long property runs.
# PYTHON chooses the interpreter, VENV the environment (default .venv; an existing one is used again).
# Without root, Debian's Chromium cannot be installed: the one line to do it is printed and the
# browser tests are reported as not run.
set -uo pipefail
cd "$(dirname "$0")/.."
mode=${1:-full}
venv=${VENV:-.venv}
python=${PYTHON:-python3}
failed=() skipped=()
export PIP_DISABLE_PIP_VERSION_CHECK=1 PYTHONDONTWRITEBYTECODE=1 JUPYTER_PLATFORM_DIRS=1

step() { # NAME COMMAND…: run it, say how it went and how long it took
  local name=$1 start=$SECONDS; shift
  printf '\n── %s\n' "$name"
  if "$@"; then printf '── %s: passed in %d s\n' "$name" $((SECONDS - start))
  else printf '── %s: FAILED after %d s\n' "$name" $((SECONDS - start)); failed+=("$name"); fi
}

setup() {
  [ -x "$venv/bin/python" ] || "$python" -m venv "$venv" || return
  "$venv/bin/python" -m pip install --quiet --upgrade pip || return
  "$venv/bin/python" -m pip install --quiet -e '.[lab]' --group dev
}

chromium() {
  command -v chromium >/dev/null && return
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium >/dev/null
  fi
  command -v chromium >/dev/null
}

step setup setup
if [ ${#failed[@]} -gt 0 ]; then echo 'The environment could not be set up; nothing was tested.'; exit 1; fi
bin=$PWD/$venv/bin
[ "${venv#/}" = "$venv" ] || bin=$venv/bin
export PATH="$bin:$PATH"

step format ruff format --check .
step lint ruff check .
step types mypy
step floors lint-imports

if [ "$mode" = quick ]; then
  export HYPOTHESIS_PROFILE=quick
  step tests pytest -q -n 2 -m 'not browser and not kernel and not packaging' tests
  step kernel pytest -q -n 2 -m kernel tests
else
  step tests pytest -q -n 2 --cov --cov-report=term:skip-covered -m 'not browser and not kernel' \
    --ignore tests/walks tests
  step schedules pytest -q -n 2 tests/walks # many and alike: counting their lines would triple them
  step kernel pytest -q -n 2 -m kernel tests
  if command -v npm >/dev/null; then
    step 'javascript' bash -c 'cd tests/widgets/js && npm install --silent --no-audit --no-fund && npm test --silent'
  else
    skipped+=('javascript: needs Node.js (apt-get install -y nodejs npm)')
  fi
  if chromium; then
    step browser pytest -q -m browser tests
  else
    skipped+=('browser: needs Chromium (sudo apt-get install -y chromium)')
  fi
fi
# Twice in one folder: a second run must not meet what the first one left behind.
step notebooks pytest -q -n 2 --dist loadfile --nbval notebooks --nbval-sanitize-with notebooks/sanitize.cfg -p no:cacheprovider
step 'notebooks again' pytest -q -n 2 --dist loadfile --nbval notebooks --nbval-sanitize-with notebooks/sanitize.cfg -p no:cacheprovider

printf '\n'
for line in "${skipped[@]+"${skipped[@]}"}"; do printf 'not run: %s\n' "$line"; done
if [ ${#failed[@]} -gt 0 ]; then printf 'failed: %s\n' "${failed[*]}"; exit 1; fi
printf 'all passed in %d s\n' "$SECONDS"
