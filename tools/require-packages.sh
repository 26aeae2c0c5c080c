#!/usr/bin/env bash
# Makes sure that the Debian packages which demo, tests and benchmarks run are there; with the argument "cluster" those
# of a real Kubernetes cluster too, with "browser" those of a browser without a display. Root installs what is missing;
# anybody else gets the line to type.
set -euo pipefail

# command or file -> Debian package
needs=(
  "ip:iproute2"
  "nft:nftables"
  "containerd:containerd"
  "runc:runc"
  "/usr/lib/cni/ptp:containernetworking-plugins"
  "busybox:busybox-static"
  "conntrack:conntrack"
  "iptables:iptables"
  "strace:strace"
  "strip:binutils"
  "git:git"
  "gcc:gcc"
  "/usr/include/linux/un.h:linux-libc-dev"
  "ping:iputils-ping"
  "python3:python3-minimal"
  "nsenter:util-linux"
  "sysctl:procps"
  "script:bsdutils"
  "npm:npm"
  "/usr/lib/$(uname -m)-linux-gnu/libatomic.so.1:libatomic1"
  "/etc/protocols:netbase"
  "/etc/ssl/certs/ca-certificates.crt:ca-certificates"
)
if [[ ${1-} == cluster ]]; then
  needs+=("etcd:etcd-server" "etcdctl:etcd-client" "tini:tini" "openssl:openssl")
fi
if [[ ${1-} == browser ]]; then
  needs+=("chromium-headless-shell:chromium-headless-shell" "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf:fonts-dejavu-core")
fi

PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
missing=()
for need in "${needs[@]}"; do
  what=${need%%:*} package=${need##*:}
  if [[ $what == /* ]]; then
    [[ -e $what ]] || missing+=("$package")
  else
    command -v "$what" >/dev/null || missing+=("$package")
  fi
done
[[ ${#missing[@]} -gt 0 ]] || exit 0

if [[ $(id -u) -ne 0 ]]; then
  echo "These Debian packages are missing: ${missing[*]}" >&2
  echo "Type: sudo apt-get update && sudo apt-get install --no-install-recommends ${missing[*]}" >&2
  echo "Demo, kernel tests and end-to-end tests make network namespaces: run make as root." >&2
  exit 1
fi
command -v apt-get >/dev/null || {
  echo "Missing: ${missing[*]} (names of Debian packages). This is no Debian: install the like, then try again." >&2
  exit 1
}
echo "installing ${missing[*]}" >&2
export DEBIAN_FRONTEND=noninteractive
# Packages may start their daemons; none of them is wanted on this machine.
policy=/usr/sbin/policy-rc.d
if [[ ! -e $policy ]]; then
  printf '#!/bin/sh\nexit 101\n' >"$policy" && chmod 755 "$policy"
  trap 'rm -f "$policy"' EXIT
fi
apt-get update -qq >&2
apt-get install -y -qq --no-install-recommends "${missing[@]}" >&2
