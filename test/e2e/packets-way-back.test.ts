import test, { type ExecutionContext } from 'ava';
import { partOf } from '../support/suite-part.ts';
import { openWorld, type World } from './packets/world.ts';

const FAMILIES = [4, 6] as const;

/** What asks, for each packet that comes in, where an answer would go; and how it is taken away. */
type Check = { readonly make: readonly string[]; readonly undo: readonly string[] };

const FIREWALLD = `table inet firewalld {
  chain mangle_PREROUTING { type filter hook prerouting priority mangle + 10; policy accept;
    icmpv6 type { nd-router-advert, nd-neighbor-solicit } accept
    fib saddr . mark . iif oif missing drop
  }
}`;

const CHECKS: Readonly<Record<string, Check>> = {
  'no default route in main': {
    make: ['ip route del default', 'ip -6 route del default'],
    undo: [],
  },
  'the default route in a table of its own': {
    make: [
      'ip route del default',
      'ip route add default via 10.0.0.1 dev eth0 table 200',
      'ip rule add iif lo lookup 200 pref 30000',
    ],
    undo: [],
  },
  "the filter of firewalld's nftables": {
    make: [`nft -f - <<'END'\n${FIREWALLD}\nEND`],
    undo: ['nft delete table inet firewalld'],
  },
  'rpfilter of iptables, in raw': {
    make: ['iptables', 'ip6tables'].map(
      (tool) => `${tool} -t raw -A PREROUTING ${ndp(tool)}-m rpfilter --validmark --invert -j DROP`,
    ),
    undo: ['iptables -t raw -F', 'ip6tables -t raw -F'],
  },
};

/** ip6tables would drop neighbour discovery, which comes from link-local addresses. */
function ndp(tool: string): string {
  return tool === 'iptables' ? '' : '! -s fe80::/10 ';
}

const cases = partOf(
  (['compact', 'per-pod'] as const).flatMap((ruleMode) => [false, true].map((isFast) => ({ ruleMode, isFast }))),
  ({ ruleMode, isFast }) => ruleMode === 'compact' && !isFast,
);

for (const { ruleMode, isFast } of cases) {
  test.serial(
    `packets: the way back to what came in by an ENI is by that ENI, for whoever asks, ${ruleMode}${isFast ? ', fast path' : ''}`,
    async (t) => {
      const world = await openWorld({ network: { ruleMode, ...(isFast && { fastPath: 'bpf' }) } });
      try {
        await podsAreReached(t, world, 'as it was');
        for (const [name, { make, undo }] of Object.entries(CHECKS)) {
          const before = await routesOf(world);
          await run(world, make);
          await podsAreReached(t, world, name);
          await run(world, undo);
          await restoreRoutes(world, before);
        }
        t.deepEqual(await world.vpc.droppedPackets(), []);
      } finally {
        await world.close();
      }
    },
  );
}

async function podsAreReached(t: ExecutionContext, world: World, when: string): Promise<void> {
  for (const family of FAMILIES) {
    for (const name of ['a1', 'b1']) {
      const pod = world.pod(name);
      const outside = world.outside(family);
      t.true(await pod.netns.ping(outside), `${when}: ${name} -> outside, IPv${family}`);
      t.true(await world.vpc.outside.netns.ping(pod.ips[family]), `${when}: outside -> ${name}, IPv${family}`);
      t.true(
        await pod.netns.ping(world.pod('c1').ips[family]),
        `${when}: ${name} -> c1 of the other node, IPv${family}`,
      );
    }
  }
}

async function run(world: World, lines: readonly string[]): Promise<void> {
  if (lines.length > 0) await world.node('n1').netns.run(['sh', '-ec', lines.join('\n')]);
}

async function routesOf(world: World): Promise<readonly string[]> {
  const { netns } = world.node('n1');
  const [v4, v6] = await Promise.all(
    [4, 6].map((family) => netns.run(['ip', `-${family}`, 'route', 'show', 'default'])),
  );
  return [v4 ?? '', v6 ?? ''].map((listing) => listing.trim());
}

async function restoreRoutes(world: World, [v4 = '', v6 = '']: readonly string[]): Promise<void> {
  await run(world, [
    `ip route replace ${v4}`,
    `ip -6 route replace ${v6.replace(/ pref \w+/, '')}`,
    'ip rule del pref 30000 2>/dev/null || true',
  ]);
}
