# Shared by .ci/run and .ci/nightly, which source it in the root of a checkout.
#
# Needs git, Python 3.11 or newer as python3, and a package index. Java 17, Maven and openssl, for the
# real Kafka broker that tests start, and Chromium, for the tests of the page, are installed with
# apt-get if they are missing: as root, or with a sudo that asks for no password. Everything else goes
# into a temporary folder and into .venv, which git ignores; the broker's jars stay in
# ~/.cache/streamgp-tests.
set -euo pipefail
exec </dev/null

work=$(mktemp -d)
declare -A beside=()
clean_up() {
  for pid in "${beside[@]}"; do kill -- "-$pid" 2>/dev/null || true; done
  rm -rf "$work"
}
trap clean_up EXIT
# Modules are compiled when they are imported; if pip compiled all of them, it would take longer than
# the rest of the installation.
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_QUIET=1 PIP_COMPILE=0
# Bytecode is in folders that git ignores; without it, hundreds of programs would compile again.
unset PYTHONDONTWRITEBYTECODE
# Programs run in parallel here; BLAS threads that wait for each other would double the time.
export OPENBLAS_NUM_THREADS=1
# Without a broker, tests that need one fail here, and are skipped elsewhere.
export CI=true
tools=$work/tools/bin

step() { printf '\n=== %s (after %d s)\n' "$1" "$SECONDS"; }

# Runs a function in parallel with the following steps, on the cores that they leave free.
start_beside() {
  set -m # in a process group of its own, to be ended as one
  (
    set -e
    renice -n 10 "$BASHPID" >/dev/null
    "$1"
    echo "($1 ended after $SECONDS s)"
  ) >"$work/$1.log" 2>&1 &
  beside[$1]=$!
  set +m
}

# Waits for such a function, prints its output, and fails if it failed.
wait_for() {
  local status=0
  wait "${beside[$1]}" || status=$?
  unset "beside[$1]"
  cat "$work/$1.log"
  return "$status"
}

# The last line of pytest in a log: how many passed, and in what time.
summary() { grep -E '(passed|failed|error).* in [0-9.]+s' "$1" | tail -n 1; }

# Installs packages; the first argument says what to do instead if that fails.
install_packages() {
  local otherwise=$1 as_root=()
  shift
  [ $# -gt 0 ] || return 0
  [ "$(id -u)" = 0 ] || as_root=(sudo -n)
  if ! command -v apt-get >/dev/null || ! "${as_root[@]}" true; then
    echo "The tests need $*: install them, or $otherwise."
    exit 1
  fi
  "${as_root[@]}" apt-get update -qq
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -qq --no-install-recommends "$@" >/dev/null
}

java_and_maven() {
  [ -z "${STREAMGP_TEST_KAFKA:-}" ] || return 0
  step 'Java and Maven'
  local missing=()
  java -version 2>&1 | grep -qE 'version "(1[7-9]|[2-9][0-9])' || missing+=(openjdk-17-jre-headless)
  command -v mvn >/dev/null || missing+=(maven)
  command -v openssl >/dev/null || missing+=(openssl)
  install_packages 'name a broker in STREAMGP_TEST_KAFKA' "${missing[@]}"
  java -version 2>&1 | head -n 1
}

browser() {
  [ -z "${STREAMGP_TEST_CHROMIUM:-}" ] || return 0
  step 'Chromium'
  command -v chromium || install_packages 'name a browser in STREAMGP_TEST_CHROMIUM' chromium
}

install_tools() {
  step 'tools'
  python3 -m venv "$work/tools"
  "$tools/pip" install -e '.[dev,bench]'
}

# Where tests look for PyFlink; like the broker's jars, it stays there.
flink=~/.cache/streamgp-tests/flink-2.2.1

# Runs a module of tests with its arguments, for which an environment with PyFlink is created the
# first time; where that is impossible, says so and leaves the tests out.
flink_run() {
  if [ ! -e "$flink/made" ]; then
    rm -rf "$flink"
    if ! bash docker/flink-environment.sh "$flink"; then
      echo 'left out: no environment with PyFlink can be created here'
      return
    fi
    touch "$flink/made"
  fi
  "$tools/python" -m "$@"
}

# The given tests, with the kernels that OpenBLAS picks on other processors.
tests_with_kernels() {
  local -x OPENBLAS_CORETYPE=$1
  shift
  if [ "$(uname -m)" != x86_64 ]; then
    echo 'left out: these kernels are for x86-64'
    return
  fi
  echo "kernels: $OPENBLAS_CORETYPE"
  "$tools/python" -c '
import os
import scipy.linalg.blas
from threadpoolctl import threadpool_info
found = [library.get("architecture") for library in threadpool_info()]
wanted = os.environ["OPENBLAS_CORETYPE"]
assert found and set(found) == {wanted}, f"expected OpenBLAS with kernels {wanted}, got {found}"'
  "$tools/pytest" -p no:cacheprovider -m 'not kafka' "$@"
}

# Copies the tests to a folder without the source, and installs the built wheel into a Python that
# has nothing else of the checkout; with matplotlib and numba, unlike the README's test command.
install_wheel() {
  local python=$1 root=$PWD missing
  "$python" -m pip install build
  "$python" -m build --outdir "$work/dist" . >"$work/build.log" || { cat "$work/build.log"; return 1; }
  missing=$(comm -23 <(git ls-files | sort) <(tar -tzf "$work"/dist/*.tar.gz | cut -d/ -f2- | sort))
  [ -z "$missing" ] || { printf 'not in the source distribution:\n%s\n' "$missing"; return 1; }
  "$python" -m pip uninstall --yes streamgp
  "$python" -m pip install "$(echo "$work"/dist/*.whl)[test,plot,fast]"
  mkdir "$work/away"
  cp -r tests examples pyproject.toml "$work/away"
  git ls-files streamgp connectors >"$work/away/files"
  cd "$work/away"
  "$python" - "$root" <<'EOF'
import importlib
import sys
from pathlib import Path

import connectors
import streamgp

for package in (streamgp, connectors):
    assert "site-packages" in package.__file__, package.__file__
here = Path(streamgp.__file__).parents[1]
names = Path("files").read_text().splitlines()
missing = [name for name in names if not (here / name).is_file()]
assert not missing, f"not in the wheel: {missing}"
needs_pyflink = {"connectors/flink/function.py", "connectors/flink/job.py"}
python = [name for name in names if name.endswith(".py") and name not in needs_pyflink]
modules = [Path(name) for name in python if "__main__" not in name]
for path in modules:
    importlib.import_module(".".join(path.with_suffix("").parts).removesuffix(".__init__"))
print(f"{len(names)} files in the wheel, {len(modules)} modules imported")
EOF
}

container_files() {
  if [ "$(id -u)" = 0 ]; then
    "$1" docker/rehearse.py
  else
    echo 'left out: files of the image are given to its user, which only root can do'
  fi
}

nothing_left_behind() {
  step 'nothing was left behind'
  local after
  after=$(git status --porcelain)
  if [ "$before" != "$after" ]; then
    printf 'The working tree has changed:\n%s\n' "$after"
    exit 1
  fi
}

python3 -c 'import sys; sys.exit(sys.version_info < (3, 11) and "python3 must be 3.11 or newer")'
before=$(git status --porcelain)
