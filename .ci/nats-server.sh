#!/usr/bin/env bash
# `.ci/nats-server.sh` prints the path of a nats-server that tests can start. It takes the one of PATH when that is 2.12 or newer, else fetches
# a newer Debian's package into .ci/nats-server, if it is not there yet. Nothing of the system is changed. Where it cannot be had, one line on
# stderr says why, and the exit code is 1.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$PWD/.ci/nats-server
server=$folder/root/usr/sbin/nats-server
suites="testing unstable"

fail() {
  echo "no nats-server: $1" >&2
  exit 1
}

new_enough() {
  local version
  version=$("$1" --version 2>/dev/null | sed -n 's/.*v\([0-9]*\.[0-9]*\).*/\1/p') || return 1
  [ -n "$version" ] && [ "$(printf '%s\n' 2.12 "$version" | sort -V | head -n 1)" = 2.12 ]
}

if installed=$(command -v nats-server) && new_enough "$installed"; then
  echo "$installed"
  exit 0
fi
[ "$(uname -s)" = Linux ] || fail "it is Debian's, for Linux"
command -v apt-get >/dev/null 2>&1 && command -v dpkg-deb >/dev/null 2>&1 || fail "apt-get and dpkg-deb are not here"

# Two tests may ask at the same time.
exec 9>"$PWD/.ci/nats-server.lock"
flock 9
if ! [ -e "$folder/complete" ]; then
  . /etc/os-release
  # The mirror, and the key, that this system uses itself.
  mirror=$(apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' |
    awk -v release="${VERSION_CODENAME:-}" '$2 == release && $3 == "main" { print $1; exit }')
  [ -n "$mirror" ] || fail "apt has no source of its own release (${VERSION_CODENAME:-unknown})"
  keyring=/usr/share/keyrings/debian-archive-keyring.gpg
  [ -e "$keyring" ] || fail "$keyring is not here"
  reason="no suite has it"
  for suite in $suites; do
    rm -rf "$folder"
    mkdir -p "$folder"/{lists/partial,cache/archives/partial,debs,root}
    printf 'Types: deb\nURIs: %s\nSuites: %s\nComponents: main\nSigned-By: %s\n' "$mirror" "$suite" "$keyring" >"$folder/newer.sources"
    apt=(apt-get -qq
      -o "Dir::Etc::sourcelist=$folder/newer.sources" -o Dir::Etc::sourceparts=/dev/null
      -o "Dir::State::lists=$folder/lists" -o "Dir::Cache=$folder/cache" -o Dir::State::status=/dev/null
      -o APT::Update::Error-Mode=any -o "APT::Sandbox::User=$(id -un)" -o Acquire::Languages=none -o Acquire::Retries=2)
    if "${apt[@]}" update >/dev/null 2>"$folder/errors" &&
      (cd "$folder/debs" && "${apt[@]}" download nats-server >/dev/null 2>"$folder/errors") &&
      dpkg-deb -x "$folder"/debs/nats-server_*.deb "$folder/root" 2>"$folder/errors" && new_enough "$server"; then
      # Only the program is needed from now on.
      rm -rf "$folder"/{lists,cache,debs}
      touch "$folder/complete"
      break
    fi
    reason=$(tail -n 1 "$folder/errors")
  done
  [ -e "$folder/complete" ] || fail "$reason"
fi
echo "$server"
