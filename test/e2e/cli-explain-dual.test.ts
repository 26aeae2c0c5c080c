import test, { type ExecutionContext } from 'ava';
import type { FindingId } from '../../inspection/catalogue/catalogue.ts';
import { explainNode as explain } from '../../inspection/explain/explain-node.ts';
import type { Explanation } from '../../inspection/explain/explanation.ts';
import { buildExecutables } from '../../tools/build.ts';
import { longTest, shortTest } from '../support/suite-part.ts';
import { firstBroken, report } from './support/explanation-text.ts';
import { type FaultScene, readFaultScene } from './support/fault-scene.ts';
import { placeOf } from './support/fault-trial.ts';
import { runCli } from './support/run-cli.ts';
import type { AttachedPod } from './support/scene-node.ts';
import { openTrial, type Trial } from './support/trial.ts';

// Both families in both rule modes, and sources that a Pod must not use. Judged by packets, as in cli-explain.test.ts.

const LOST_AFTER_MS = 1_500;
/** Addresses of the Pod's subnet that the VPC has given to nobody. */
const FORGED = { 4: '10.0.2.250', 6: 'fd00:10:0:2::250' } as const;

type RuleMode = 'compact' | 'per-pod';
type Stage = { readonly trial: Trial; readonly pod: AttachedPod };

const stages = new Map<RuleMode, Stage>();

test.before(async (t) => {
  t.timeout(240_000);
  await buildExecutables(['tke-eni']);
  for (const ruleMode of ['compact', 'per-pod'] as const) {
    const trial = await openTrial({ ruleMode, isDual: true, ipsPerEni: 4 });
    const pod = await trial.addPod();
    stages.set(ruleMode, { trial, pod });
    await trial.addPod();
    await trial.killAgent();
  }
});
test.after.always(async () => {
  for (const { trial } of stages.values()) await trial.close();
});

function stageOf(ruleMode: RuleMode): Stage {
  const stage = stages.get(ruleMode);
  if (stage === undefined) throw new Error(`${ruleMode}: not open`);
  return stage;
}

async function explained(
  { trial }: Stage,
  subject: string,
  ends: { to?: string; from?: string } = {},
): Promise<Explanation> {
  const { netns, stateDir } = placeOf(trial);
  const context = { global: { netns: netns.name, stateDir, hostRoot: '/' } };
  return (await explain(context, { subject, to: ends.to, from: ends.from })).explanation;
}

function ipsOf(pod: AttachedPod, family: 4 | 6): string {
  return pod.ips.find((ip) => ip.includes(':') === (family === 6)) ?? '';
}

function outsideOf({ trial }: Stage, family: 4 | 6): string {
  return family === 4 ? trial.vpc.outside.ip : trial.vpc.outside.ipv6;
}

for (const ruleMode of ['compact', 'per-pod'] as const) {
  shortTest.serial(`explain: finds every hop of both families in order, ${ruleMode}`, async (t) => {
    const stage = stageOf(ruleMode);
    const explanation = await explained(stage, `default/${stage.pod.name}`);
    const notOk = explanation.paths.flatMap(({ hops }) => hops.filter(({ verdict }) => verdict !== 'ok'));
    t.deepEqual(notOk, [], report(explanation));
    t.is(explanation.paths.length, 8);
    for (const family of [4, 6] as const) {
      t.true(await stage.pod.netns.ping(outsideOf(stage, family)));
      t.true(await stage.trial.node.netns.ping(ipsOf(stage.pod, family)));
    }
  });

  for (const family of [4, 6] as const) {
    longTest.serial(`explain: says where a forged IPv${family} source ends, ${ruleMode}`, async (t) => {
      const stage = stageOf(ruleMode);
      const source = FORGED[family];
      const to = outsideOf(stage, family);
      await stage.pod.netns.ip(
        'address',
        'add',
        `${source}/${family === 4 ? 32 : 128}`,
        'dev',
        'eth0',
        ...(family === 6 ? ['nodad'] : []),
      );
      try {
        t.false(await stage.pod.netns.ping(to, { from: source, waitMs: LOST_AFTER_MS }));
        const explanation = await explained(stage, stage.pod.name, { to, from: source });
        t.deepEqual(firstBroken(explanation), ['source-not-ours'], report(explanation));
        const [path] = explanation.paths;
        const broken = path?.hops.find(({ verdict }) => verdict === 'broken');
        t.is(broken?.kind, family === 4 ? 'sysctl' : 'nft');
        const own = await explained(stage, ipsOf(stage.pod, family), { to });
        // Bound by nobody, a packet may take the forged address: the kernel chooses.
        const arrives = await stage.pod.netns.ping(to, { waitMs: LOST_AFTER_MS });
        t.is(firstBroken(own).length === 0, arrives, report(own));
        t.true(await stage.pod.netns.ping(to, { from: ipsOf(stage.pod, family) }));
      } finally {
        await stage.pod.netns.ip('address', 'del', `${source}/${family === 4 ? 32 : 128}`, 'dev', 'eth0');
      }
    });
  }
}

type Fault = {
  readonly name: string;
  readonly modes: readonly RuleMode[];
  readonly family: 4 | 6;
  readonly inject: (stage: Stage, scene: FaultScene) => Promise<unknown>;
  readonly undo?: (stage: Stage, scene: FaultScene) => Promise<unknown>;
  readonly finds: FindingId;
  /** Whether a ping from the Pod to the outside fails. */
  readonly breaks: boolean;
};

const ip = ({ trial }: Stage, ...args: readonly string[]): Promise<string> => trial.node.netns.ip(...args);
const both = ['compact', 'per-pod'] as const;

const FAULTS: readonly Fault[] = [
  {
    name: 'IPv6 forwarding off',
    modes: both,
    family: 6,
    inject: ({ trial }) => trial.node.netns.sysctl({ 'net/ipv6/conf/all/forwarding': 0 }),
    finds: 'ip-forward-off',
    breaks: true,
  },
  {
    name: "the Pod's IPv6 host route gone",
    modes: both,
    family: 6,
    inject: (stage) =>
      ip(
        stage,
        'route',
        'del',
        `${ipsOf(stage.pod, 6)}/128`,
        'table',
        stage.trial.ruleMode === 'compact' ? '3999' : 'main',
      ),
    finds: 'route-missing',
    breaks: true,
  },
  {
    name: "the IPv6 default route of the ENI's table gone",
    modes: both,
    family: 6,
    inject: (stage, { table }) => ip(stage, '-6', 'route', 'del', 'default', 'table', table),
    finds: 'route-missing',
    breaks: true,
  },
  {
    name: 'the IPv6 rule of the mark gone',
    modes: ['compact'],
    family: 6,
    inject: (stage, { fwmark }) => ip(stage, '-6', 'rule', 'del', 'pref', '1536', 'fwmark', fwmark),
    finds: 'rule-missing',
    breaks: true,
  },
  {
    name: 'a blackhole for IPv6 above ours',
    modes: both,
    family: 6,
    inject: (stage) => ip(stage, '-6', 'rule', 'add', 'pref', '100', 'from', ipsOf(stage.pod, 6), 'blackhole'),
    undo: (stage) => ip(stage, '-6', 'rule', 'del', 'pref', '100'),
    finds: 'foreign-rule-above-ours',
    breaks: true,
  },
  {
    name: 'the rule from the Pod gone',
    modes: ['per-pod'],
    family: 4,
    inject: (stage) => ip(stage, 'rule', 'del', 'pref', '1536', 'from', stage.pod.ip),
    finds: 'rule-missing',
    breaks: true,
  },
  {
    name: 'the rule from the Pod to the table of another ENI',
    modes: ['per-pod'],
    family: 4,
    inject: async (stage, { otherTable }) => {
      await ip(stage, 'rule', 'del', 'pref', '1536', 'from', stage.pod.ip);
      await ip(stage, 'rule', 'add', 'pref', '1536', 'from', stage.pod.ip, 'lookup', otherTable, 'proto', '84');
    },
    finds: 'rule-wrong-table',
    breaks: true,
  },
  {
    // The table of addresses without a Pod has every one: this rule alone leads a packet past it.
    name: 'the rule to the Pod gone',
    modes: ['per-pod'],
    family: 4,
    inject: (stage) => ip(stage, 'rule', 'del', 'pref', '512', 'to', stage.pod.ip),
    finds: 'rule-missing',
    breaks: true,
  },
  {
    name: 'nft flush ruleset, which per-pod mode can do without',
    modes: ['per-pod'],
    family: 4,
    inject: ({ trial }) => trial.node.netns.nft('flush ruleset\n'),
    finds: 'nft-table-missing',
    breaks: false,
  },
  {
    name: 'a permanent neighbour with a wrong MAC for the Pod on the node',
    modes: both,
    family: 4,
    inject: (stage, { hostVeth }) =>
      ip(stage, 'neigh', 'replace', stage.pod.ip, 'lladdr', '02:de:ad:be:ef:02', 'dev', hostVeth, 'nud', 'permanent'),
    undo: (stage, { hostVeth }) => ip(stage, 'neigh', 'del', stage.pod.ip, 'dev', hostVeth),
    finds: 'neigh-wrong-mac',
    breaks: true,
  },
  {
    name: 'a throw route for the outside in the table of the ENI',
    modes: ['compact'],
    family: 4,
    inject: (stage, { table }) => ip(stage, 'route', 'add', 'throw', `${outsideOf(stage, 4)}/32`, 'table', table),
    undo: (stage, { table }) => ip(stage, 'route', 'del', 'throw', `${outsideOf(stage, 4)}/32`, 'table', table),
    finds: 'table-collision',
    breaks: true,
  },
  {
    name: 'strict, and the mark does not count',
    modes: ['compact'],
    family: 4,
    inject: ({ trial }, { eni: { ifname } }) =>
      trial.node.netns.sysctl({
        [`net/ipv4/conf/${ifname}/rp_filter`]: 1,
        [`net/ipv4/conf/${ifname}/src_valid_mark`]: 0,
      }),
    undo: () => Promise.resolve(),
    finds: 'rp-filter-strict',
    breaks: true,
  },
];

async function tryFault(t: ExecutionContext, fault: Fault, stage: Stage): Promise<void> {
  const scene = await readFaultScene(stage.trial, stage.pod);
  try {
    await fault.inject(stage, scene);
    const to = outsideOf(stage, fault.family);
    t.is(
      await stage.pod.netns.ping(to, fault.breaks ? { waitMs: LOST_AFTER_MS } : {}),
      !fault.breaks,
      'packets to the outside',
    );
    const explanation = await explained(stage, ipsOf(stage.pod, fault.family), { to });
    t.is(firstBroken(explanation).length > 0, fault.breaks, report(explanation));
    if (fault.breaks) t.is(firstBroken(explanation)[0], fault.finds, report(explanation));
    else
      t.true(
        explanation.findings.some(({ id }) => id === fault.finds),
        report(explanation),
      );
  } finally {
    await fault.undo?.(stage, scene);
    const repaired = await runCli(placeOf(stage.trial), 'repair');
    if (repaired.code !== 0) t.log(repaired);
  }
  const after = await explained(stage, stage.pod.ip);
  t.deepEqual(firstBroken(after), [], report(after));
}

for (const fault of FAULTS) {
  for (const ruleMode of fault.modes) {
    longTest.serial(`explain: judges as packets do: ${fault.name}, ${ruleMode}`, (t) =>
      tryFault(t, fault, stageOf(ruleMode)),
    );
  }
}

shortTest.serial('explain: says what the node does with an address that is nobody’s here', async (t) => {
  const stage = stageOf('compact');
  const foreign = await explained(stage, '10.9.9.9');
  t.deepEqual(firstBroken(foreign), [], report(foreign));
  t.regex(foreign.subject, /no Pod of this node/);
  t.true(
    foreign.paths[0]?.hops.some(({ title }) => title.includes('dev eth0')),
    report(foreign),
  );
  const scene = await readFaultScene(stage.trial, stage.pod);
  await ip(
    stage,
    'route',
    'add',
    '10.0.2.240/32',
    'dev',
    scene.hostVeth,
    'table',
    '3999',
    'proto',
    '84',
    'scope',
    'link',
  );
  try {
    const stale = await explained(stage, '10.0.2.240');
    t.is(firstBroken(stale)[0], 'route-stale', report(stale));
  } finally {
    await ip(stage, 'route', 'del', '10.0.2.240/32', 'table', '3999');
  }
});

shortTest.serial('explain: walks an ENI’s own address by its table', async (t) => {
  const stage = stageOf('compact');
  const { eni, table } = await readFaultScene(stage.trial, stage.pod);
  const explanation = await explained(stage, eni.eniId);
  t.deepEqual(firstBroken(explanation), [], report(explanation));
  t.true(explanation.paths.length > 0);
  t.regex(explanation.subject, new RegExp(`table ${table}$`));
});
