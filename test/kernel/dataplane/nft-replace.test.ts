import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import test from 'ava';
import { checkNft } from '../../../dataplane/check-pod.ts';
import type { EniNetwork } from '../../../dataplane/network.ts';
import { planNode } from '../../../dataplane/plan-node.ts';
import { waitUntil } from '../../support/wait-until.ts';
import { podOf, type TestNode, withTestNode } from './test-node.ts';

// While the table is replaced, packets run through the one before. A decision of that one must not depend on a set that
// the same transaction takes away: a packet of an ENI that found nothing in it counted as one of a third link, and the
// connection's answers left by the primary interface.

/** Sends UDP as fast as one process can until its input ends. The node has no route back, and needs none. */
const FLOOD = `
const socket = require('node:dgram').createSocket('udp4');
socket.bind(7000, '10.0.5.1', () => socket.connect(7000, '10.0.5.5', () => {
  const bytes = Buffer.alloc(32);
  const burst = () => { for (let n = 0; n < 200; n++) socket.send(bytes); setImmediate(burst); };
  socket.on('error', () => {});
  burst();
}));
process.stdin.on('end', () => process.exit(0)).resume();
`;

/** Looks behind our chain at what came in by eth5. */
const JUDGE = `table inet judge {
 counter seen { }
 counter third { }
 counter unmarked { }
 chain behind {
  type filter hook prerouting priority mangle + 1; policy accept;
  iifname "eth5" meta l4proto udp counter name seen
  iifname "eth5" meta l4proto udp ct mark and 0x80 == 0x80 counter name third
  iifname "eth5" meta l4proto udp meta mark and 0xff0000 == 0 counter name unmarked
 }
}
`;

/** A replacement that goes wrong does so in one case of four. */
const TURNS = 60;

test('nftReplaceCommands: no packet of an ENI is taken for one of a third link while the table is replaced', async (t) => {
  t.timeout(60_000);
  await withTestNode(async (node) => {
    const [first] = node.enis;
    if (first === undefined) return t.fail();
    await node.reach(planNode(node.network, node.enis, []));
    node.run('nft', JUDGE);
    const flood = startFlood(node);
    try {
      await seenAtLeast(node, 1_000);
      for (let turn = 1; turn <= TURNS; turn++) {
        const lines = await node.reach(planNode(node.network, turn % 2 === 0 ? node.enis : [first], []));
        t.true(lines.some((line) => line.startsWith('nft ')));
      }
    } finally {
      flood.stdin?.end();
      await once(flood, 'close');
    }
    const counts = countsOf(node);
    t.log(`${counts['seen']} packets came in by eth5 while the table was replaced ${TURNS} times`);
    t.true((counts['seen'] ?? 0) > 20_000, 'packets came meanwhile');
    t.is(counts['third'], 0, 'their connection keeps the mark of the ENI');
    t.is(counts['unmarked'], 0, 'all have the mark of the ENI');
  });
});

function startFlood({ far, enis }: TestNode): ChildProcess {
  far.ip('address', 'add', '10.0.5.1/24', 'dev', 'far5');
  far.ip('neigh', 'add', '10.0.5.5', 'lladdr', enis[0]?.mac ?? '', 'dev', 'far5');
  return spawn('ip', ['netns', 'exec', far.name, process.execPath, '-e', FLOOD], {
    stdio: ['pipe', 'ignore', 'inherit'],
  });
}

async function seenAtLeast(node: TestNode, packets: number): Promise<void> {
  await waitUntil(() => (countsOf(node)['seen'] ?? 0) >= packets, { what: 'packets that come in by eth5' });
}

function countsOf(node: TestNode): Readonly<Record<string, number>> {
  const listing = node.run('nft', '-j', 'list', 'counters', 'table', 'inet', 'judge');
  const { nftables } = JSON.parse(listing) as { nftables: { counter?: { name: string; packets: number } }[] };
  return Object.fromEntries(nftables.flatMap(({ counter }) => (counter ? [[counter.name, counter.packets]] : [])));
}

/** A chain with a name that nft's own language cannot say. */
const addChain = ({ run }: TestNode, name: string): string => {
  const nftables = [{ add: { chain: { family: 'inet', table: 'tke_eni', name } } }];
  return run('sh', '-c', 'echo "$1" | nft -j -f -', 'sh', JSON.stringify({ nftables }));
};

/** Reads the table, changes its text, and loads it in the place of the one before. */
const edit = ({ run }: TestNode, ...expressions: readonly string[]): string =>
  run(
    'sh',
    '-c',
    `(echo 'delete table inet tke_eni'; nft list table inet tke_eni | sed "$@") | nft -f -`,
    'sh',
    ...expressions,
  );

/** What is there before a pass: ours as it was, or as somebody left it. */
const PRESENT: Readonly<Record<string, (node: TestNode, first: EniNetwork) => unknown>> = {
  'with one ENI less': ({ network, reach }, first) => reach(planNode(network, [first], [])),
  'of another ENI': ({ network, reach }, first) =>
    reach(planNode(network, [{ ...first, eniId: 'eni-9', table: 4029, slot: 9 }], [])),
  'of the other rule mode': ({ network, enis, reach }) =>
    reach(planNode({ ...network, ruleMode: 'per-pod' }, enis, [])),
  'that lacks a chain': ({ run }) => run('nft', 'delete chain inet tke_eni returned'),
  'with the chain of an ENI that nobody has': ({ run }) => run('nft', 'add chain inet tke_eni from_4099'),
  'with a chain that is named like a keyword': (node) => addChain(node, 'drop'),
  'with a chain whose name ends a command': (node) => addChain(node, 'eni_4025;x'),
  'with a chain whose name begins a comment': (node) => addChain(node, 'returned#x'),
  'with a comment that looks like a chain of an ENI': ({ run }) =>
    run('nft', 'add rule inet tke_eni via_4025 accept comment "\n\tchain eni_99 {\n"'),
  'with a comment that looks like what is wanted': ({ run }) => {
    const wanted = /^\tchain via_4025 \{\n[\s\S]*?^\t\}\n/m.exec(
      run('nft', '-n', '-s', 'list', 'table', 'inet', 'tke_eni'),
    );
    const comment = `\n${wanted?.[0]}\n\tchain prerouting {\n`;
    run('nft', `flush chain inet tke_eni via_4025; add rule inet tke_eni via_4025 drop comment "${comment}"`);
  },
  'with a comment at a chain': (node) => edit(node, 's/chain via_4025 {/& comment "guest";/'),
  'with flags': (node) => edit(node, 's/^table inet tke_eni {/& flags dormant;/'),
};

for (const [what, prepare] of Object.entries(PRESENT)) {
  test.serial(`diffHost: one replacement is enough for a table ${what}`, async (t) => {
    t.timeout(60_000);
    await withTestNode(async (node) => {
      const [first] = node.enis;
      if (first === undefined) return t.fail();
      const desired = planNode(node.network, node.enis, []);
      await node.reach(desired);
      await prepare(node, first);
      const lines = await node.reach(desired);
      t.is(lines.filter((line) => line.startsWith('nft ')).length, 1);
      t.deepEqual(await node.reach(desired), []);
      t.deepEqual(await checkNft(node.kernel, podOf(first, ['10.0.5.7']), desired.nft), []);
    });
  });
}
