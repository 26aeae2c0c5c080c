#!/bin/sh
# Made by tke-eni: makes the same again in an empty network namespace.
set -e
ip -batch - <<'END_OF_LINKS'
link add name eth0 address 0a:00:10:00:00:01 type veth peer name tke-si-2
link set dev tke-si-2 addrgenmode none
link set dev tke-si-2 up
link add name eth1 address 0a:00:20:00:00:01 type veth peer name tke-si-3
link set dev tke-si-3 addrgenmode none
link set dev tke-si-3 up
link add name eni0d7763386da address 0a:00:30:00:00:00 type veth peer name tke-si-100
link set dev tke-si-100 addrgenmode none
link set dev tke-si-100 up
link add name eni0761ccbeace address 0a:00:30:00:00:01 type veth peer name tke-si-101
link set dev tke-si-101 addrgenmode none
link set dev tke-si-101 up
link set dev eth0 mtu 1500 group 0 addrgenmode none up
link set dev eth1 mtu 1500 group 0 addrgenmode none up
link set dev eni0d7763386da mtu 1500 group 4003 alias tke-eni/000000000000000000000000000000009e3779b97f4a7c15f39cc0605cedc834/eth0 addrgenmode none up
link set dev eni0761ccbeace mtu 1500 group 4003 alias tke-eni/000000000000000000000000000000013c6ef372fe94f82be73980c0b9db9068/eth0 addrgenmode none up
link set dev lo up
END_OF_LINKS
ip -4 -batch - <<'END_OF_IPV4'
address add 10.0.1.2/32 dev eth1 scope global
address add 10.0.0.4/24 dev eth0 scope global
route add 10.0.1.1/32 dev eth1 table 4003 proto 84 scope 253
route add unreachable default table 4003 proto 84 scope 0 metric 2147483647
route add 10.0.1.10/32 dev eni0d7763386da table 3999 proto 84 scope 253
route add 10.0.1.11/32 dev eni0761ccbeace table 3999 proto 84 scope 253
route add default via 10.0.1.1 dev eth1 table 4003 proto 84 scope 0
route add default via 10.0.0.1 dev eth0 table 254 proto 16 scope 0
rule add from all pref 512 protocol 84 lookup 3999
rule add from all fwmark 0x80/0x80 pref 1280 protocol 84 lookup 254
rule add from all fwmark 0x10000/0xff0000 pref 1536 protocol 84 lookup 4003
rule add from 10.0.1.2/32 pref 1537 protocol 84 lookup 4003
rule add from all pref 1280 protocol 84 lookup 4001
END_OF_IPV4
ip -6 -batch - <<'END_OF_IPV6'
address add fd00:1::1:2/128 dev eth1 scope global
route add unreachable default table 4003 proto 84 metric 2147483647
route add fd00:1::1:100/128 dev eni0d7763386da table 3999 proto 84
route add fd00:1::1:101/128 dev eni0761ccbeace table 3999 proto 84
route add default via fe80::1 dev eth1 table 4003 proto 84
rule add from all pref 512 protocol 84 lookup 3999
rule add from all fwmark 0x80/0x80 pref 1280 protocol 84 lookup 254
rule add from all fwmark 0x10000/0xff0000 pref 1536 protocol 84 lookup 4003
rule add from fd00:1::1:2/128 pref 1537 protocol 84 lookup 4003
rule add from all pref 1280 protocol 84 lookup 4001
rule del pref 0
rule del pref 32766
END_OF_IPV6
nft -f - <<'END_OF_NFT'
table inet tke_eni {
 chain via_4003 {
  meta mark set meta mark and 0xff00ffff or 0x10000
 }
 chain eni_4003 {
  ip6 saddr != { ::, fe80::/10 } fib saddr . iif oif missing drop
  meta mark set meta mark and 0xff00ffff or 0x10000
  ct direction reply ct mark and 0x80 == 0x80 meta mark set meta mark or 0x80
  ct direction reply ct mark and 0xff0000 vmap { 0x10000 : jump via_4003 }
 }
 chain from_4003 {
  ct direction original ct mark set ct mark and 0xff00ff7f or 0x10000
 }
 chain arrival {
  type filter hook prerouting priority raw - 10; policy accept;
  iifname "eth1" goto via_4003
 }
 chain prerouting {
  type filter hook prerouting priority mangle; policy accept;
  iifgroup 4003 goto eni_4003
  iifname "eth1" goto from_4003
  iifname != "eth0" ip saddr { 10.0.0.0/16 } ct direction reply ct mark and 0x80 == 0x80 meta mark set meta mark or 0x80
  ct direction original ct mark set ct mark and 0xff00ffff or 0x80
 }
 chain balanced {
  type filter hook output priority mangle + 1; policy accept;
  ct state != untracked meta mark and 0xff0000 != 0x0 meta mark set meta mark xor 0x80
 }
 chain balanced_route {
  type route hook output priority mangle + 2; policy accept;
  ct state != untracked meta mark and 0xff0000 != 0x0 meta mark set meta mark xor 0x80
 }
 chain returned {
  type filter hook forward priority filter; policy accept;
  iifname { "eth1" } oifname { "eth0", "eth1" } ct status and 0x20 == 0x0 drop
 }
}
END_OF_NFT
