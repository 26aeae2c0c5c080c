import { execFileSync } from 'node:child_process';
import test from 'ava';
import { parseNftChains } from '../../../inspection/firewall/parse-nft-chains.ts';
import { readNftFacts } from '../../../inspection/node/read-nft-facts.ts';
import { TestNetns } from '../netlink/support/test-netns.ts';

const RULESET = `
table netdev other {
  chain one { type filter hook ingress device "v0" priority 0; policy drop; }
  chain two { type filter hook egress devices = { v0, v1 } priority 0; }
  chain target { }
}
table inet some {
  chain three { type filter hook ingress device "v1" priority 0; }
  chain four { type filter hook input priority 0; }
}
`;

test('readNftFacts: has the links of chains at ingress and egress, also where `nft -j` leaves them out', async (t) => {
  using host = new TestNetns();
  host.addVethPair();
  execFileSync('ip', ['netns', 'exec', host.name, 'nft', '-f', '-'], { input: RULESET });
  const facts = await readNftFacts({ netnsPath: `/run/netns/${host.name}` });
  if (facts.kind === 'unknown') throw new Error(facts.why);
  const devices = parseNftChains(facts.value.objects).map((chain) => [chain.name, chain.devices?.toSorted()]);
  t.deepEqual(Object.fromEntries(devices), {
    one: ['v0'],
    two: ['v0', 'v1'],
    target: undefined,
    three: ['v1'],
    four: undefined,
  });
});
