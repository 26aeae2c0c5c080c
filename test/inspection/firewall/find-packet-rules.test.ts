import test from 'ava';
import { findPacketRules } from '../../../inspection/firewall/find-packet-rules.ts';
import { known } from '../../../inspection/node/known.ts';

// Rules that this machine may have no kernel or program for; test/kernel/cli/packet-rules.test.ts has the others.

for (const [rule, kinds] of [
  ['-m set --match-set busy src --packets-gt 1000 -j DROP', ['packets-gt']],
  ['-m set --match-set busy src -j DROP', []],
  ['-m nfacct --nfacct-name quota -j DROP', ['nfacct']],
  ['-m conntrack --ctstate INVALID -m nfacct --nfacct-name ct_state_invalid_dropped_pkts -j DROP', []],
  ['-p tcp -m mark --mark 0x9a8f0200 -j TPROXY --on-port 4711', []],
] as const)
  test(`findPacketRules: ${rule}: ${kinds.join() || 'nothing'}`, (t) => {
    const lines = ['*filter', ':FORWARD ACCEPT [0:0]', `-A FORWARD ${rule}`, 'COMMIT'];
    const iptables = known({ legacy: known(lines), nft: known([]) });
    t.deepEqual(
      findPacketRules({ objects: [], iptables }).flatMap((found) => found.kinds),
      [...kinds],
    );
  });
