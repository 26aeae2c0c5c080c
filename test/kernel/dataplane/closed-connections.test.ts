import test, { type ExecutionContext } from 'ava';
import { type SegmentScene, type Side, type Step, withSegments } from './segment-scene.ts';

// What ends a TCP connection ends its learned flow, and connection tracking sees it: a later connection by the same ports is a new
// one to policies and to translation. Each packet is compared with what becomes of it without the fast path.

const FAMILIES = [4, 6] as const;
const FIRST_PORT = 40_000;
const ELSEWHERE = '10.0.77.8';

/** More than the windows that connection tracking saw, both ways. */
const DATA: readonly Step[] = [
  ...Array.from({ length: 4 }, (): readonly Step[] => [
    { by: 'client', flags: 'PA', bytes: 1300, times: 20 },
    { by: 'server', flags: 'PA', bytes: 1300, times: 20 },
  ]).flat(),
  { by: 'client', flags: 'A' },
];

/** A connection of which both flows are learned. */
const OPEN: readonly Step[] = [
  { by: 'client', flags: 'S' },
  { by: 'server', flags: 'SA' },
  { by: 'client', flags: 'A' },
  ...DATA,
];

/** The same ports again, by a client that keeps to the rules of TCP. */
const AGAIN: readonly Step[] = [{ ahead: 1_000_000 }, ...OPEN];

/** The same where nothing answers. */
const TRY_AGAIN: readonly Step[] = [
  { ahead: 1_000_000 },
  { by: 'client', flags: 'S' },
  { by: 'client', flags: 'A' },
  { by: 'client', flags: 'PA', bytes: 1300 },
  { by: 'server', flags: 'PA', bytes: 1300 },
];

/** A policy as most are, but that nothing new may begin. */
const NOTHING_NEW = `table inet admin { chain forward { type filter hook forward priority filter; policy accept;
    ct state invalid drop
    ct state established accept
    meta l4proto tcp drop
  }; }`;

const TRANSLATED = `table inet admin { chain translate { type nat hook prerouting priority dstnat; policy accept;
    tcp dport 80 dnat ip to ${ELSEWHERE}
  }; }`;

const other = (side: Side): Side => (side === 'client' ? 'server' : 'client');

/** Both ends close, this one first; the other one sends more before it does. */
const closedBy = (side: Side, more = 0): readonly Step[] => [
  { by: side, flags: 'FA' },
  { by: other(side), flags: 'A' },
  ...Array.from({ length: more }, (): readonly Step[] => [
    { by: other(side), flags: 'PA', bytes: 1300 },
    { by: side, flags: 'A' },
  ]).flat(),
  { by: other(side), flags: 'FA' },
  { by: side, flags: 'A' },
];

/** How a connection ends. */
const ENDINGS: Readonly<Record<string, readonly Step[]>> = {
  'FIN of the client first': closedBy('client'),
  'FIN of the server first': closedBy('server'),
  'half closed by the client, and the server sends more': closedBy('client', 30),
  'half closed by the server, and the client sends more': closedBy('server', 30),
  'FIN of both at once': [
    { by: 'client', flags: 'FA' },
    { by: 'server', flags: 'FA', off: 0 },
    { by: 'client', flags: 'A' },
    { by: 'server', flags: 'A' },
  ],
  'RST of the client': [{ by: 'client', flags: 'RA' }],
  'RST of the client with data on its way': [
    { by: 'client', flags: 'PA', bytes: 700 },
    { by: 'client', flags: 'RA' },
  ],
  'RST of the client that answers data, without a number acknowledged': [
    { by: 'server', flags: 'PA', bytes: 700 },
    { by: 'client', flags: 'R' },
  ],
  'RST of the client, then the rest of what the server sent': [
    { by: 'client', flags: 'RA' },
    { by: 'server', flags: 'PA', bytes: 1300, times: 5 },
    { by: 'client', flags: 'R' },
  ],
  'RST of the client after its FIN': [
    { by: 'client', flags: 'FA' },
    { by: 'client', flags: 'RA' },
  ],
  'RST that belongs to nothing, then the connection goes on, and ends by RST': [
    { by: 'client', flags: 'RA', off: 30_000 },
    { by: 'server', flags: 'A' },
    { by: 'client', flags: 'PA', bytes: 1300, times: 20 },
    { by: 'server', flags: 'PA', bytes: 1300, times: 20 },
    { by: 'client', flags: 'A' },
    { by: 'client', flags: 'RA' },
  ],
};

/** A line of each step, and the states of the entries of connection tracking. */
type Outcome = { readonly lines: readonly string[]; readonly states: readonly string[] };

/** Of each ending: what becomes of a connection that ends so, and of what comes after it by the same ports. */
async function outcomes(
  fastPath: 'off' | 'bpf',
  family: 4 | 6,
  { between, after, endings = ENDINGS, from }: Comparison,
): Promise<Readonly<Record<string, Outcome>>> {
  const play = async (scene: SegmentScene) => {
    const connections = Object.entries(endings).map(([ending, steps], at) => ({
      ...{ ending, steps, one: scene.connection(FIRST_PORT + at) },
      lines: [] as string[],
    }));
    for (const { one, lines } of connections) lines.push(...(await one.send(OPEN)));
    if (from === 'older') {
      await scene.upgrade();
      for (const { one, lines } of connections) lines.push(...(await one.send(DATA)));
    }
    for (const { one, lines, steps } of connections) lines.push(...(await one.send(steps)));
    if (between !== undefined) scene.load(between);
    for (const { one, lines } of connections) lines.push(...(await one.send(after)));
    return Object.fromEntries(connections.map(({ ending, one, lines }) => [ending, { lines, states: one.states() }]));
  };
  return await withSegments(fastPath, family, play, fastPath === 'bpf' ? from : 'present');
}

type Comparison = {
  readonly between?: string;
  readonly after: readonly Step[];
  readonly endings?: Readonly<Record<string, readonly Step[]>>;
  readonly from?: 'older';
};

async function compare(t: ExecutionContext, family: 4 | 6, comparison: Comparison): Promise<readonly Outcome[]> {
  const off = await outcomes('off', family, comparison);
  t.deepEqual(await outcomes('bpf', family, comparison), off);
  return Object.values(off);
}

for (const family of FAMILIES) {
  test.serial(`fast path: nothing new passes by the ports of a closed connection, IPv${family}`, async (t) => {
    for (const { states } of await compare(t, family, { between: NOTHING_NEW, after: TRY_AGAIN }))
      t.deepEqual(states, []);
  });

  test.serial(`fast path: the same ports at once, where they may, IPv${family}`, async (t) => {
    for (const { lines } of await compare(t, family, { after: [...AGAIN, ...closedBy('client')] }))
      t.deepEqual(
        lines.filter((line) => line.includes('nowhere')),
        [],
      );
  });
}

test.serial('fast path: the same ports at once, translated since, lead elsewhere', async (t) => {
  const after: readonly Step[] = [{ ahead: 1_000_000 }, { by: 'client', flags: 'S' }];
  for (const { lines } of await compare(t, 4, { between: TRANSLATED, after }))
    t.is(lines.at(-1), `client S: 1 ${ELSEWHERE}`);
});

test.serial('fast path: an agent of this release takes over in mid-connection', async (t) => {
  for (const { states } of await compare(t, 4, { between: NOTHING_NEW, after: TRY_AGAIN, from: 'older' }))
    t.deepEqual(states, []);
});

// The kernel alone takes a SYN of the client for a packet of the connection that the server reset, and no rule for new
// connections sees it (tcp_packet() in nf_conntrack_proto_tcp.c).
test.serial(
  'fast path: after a RST of the server a SYN begins a new connection; to the kernel alone it is of the old one',
  async (t) => {
    const endings = { 'RST of the server': [{ by: 'server', flags: 'RA' }] } as const;
    const [closed] = await compare(t, 4, { after: [], endings });
    t.deepEqual(closed?.states, ['CLOSE']);
    const denied = {
      between: NOTHING_NEW,
      after: [{ ahead: 1_000_000 }, { by: 'client', flags: 'S' }],
      endings,
    } as const;
    t.is((await outcomes('bpf', 4, denied))['RST of the server']?.lines.at(-1), 'client S: 1 nowhere');
    t.is((await outcomes('off', 4, denied))['RST of the server']?.lines.at(-1), 'client S: 1 10.0.77.7');
  },
);

test.serial(
  'fast path: a RST 3 GiB after what connection tracking saw is valid, and ends the connection',
  async (t) => {
    const far: readonly Step[] = [
      { ahead: 3 * 2 ** 30 },
      { by: 'client', flags: 'PA', bytes: 100 },
      { by: 'server', flags: 'PA', bytes: 100 },
      { by: 'client', flags: 'A' },
    ];
    const { far: outcome } = await outcomes('bpf', 4, {
      ...{ endings: { far }, between: NOTHING_NEW, after: [{ by: 'client', flags: 'RA' }] },
    });
    t.is(outcome?.lines.at(-1), 'client RA: 1 10.0.77.7');
    t.deepEqual(outcome?.states, ['CLOSE']);
  },
);
