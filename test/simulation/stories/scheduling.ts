import { API_VERSION, POD_ANNOTATION } from '../../../crd/names.ts';
import { STATIC_IP_CONFIGS } from '../../../kube/resource-types.ts';
import { objectOf, worldOf } from '../kept-stage.ts';
import type { Stage } from '../stage.ts';
import type { ExtenderFault } from '../standins/kube-scheduler.ts';
import type { Story } from '../story.ts';
import { CLOUD } from '../world.ts';

/** Nodes of five addresses each. */
const SMALL = { cores: 1 } as const;
/** The webhook makes Pods ask for addresses, and the extender says where there are some. */
const PROGRAMS = { extenderFlags: [], webhookFlags: [] } as const;
const PLAIN = { isPlain: true } as const;

function bound(stage: Stage, names: readonly string[]): readonly string[] {
  return names.filter((name) => stage.nodeOf(name) !== undefined);
}

async function untilBound(stage: Stage, names: readonly string[], count: number): Promise<void> {
  await stage.until(`${count} are bound`, () => bound(stage, names).length === count);
}

/** Ten addresses for twelve Pods, which come at once. The leader dies among them, and what the other one hears is late. */
export const lastAddresses: Story = {
  title: 'as many Pods are bound as there are addresses, and the next ones when some end',
  world: PROGRAMS,
  tell: async (stage) => {
    await stage.node(SMALL);
    await stage.node(SMALL);
    stage.begin();
    stage.apiFault({ userAgent: 'extender-*', verbs: ['watch'], action: { kind: 'watch-delay', ms: 8_000 } });
    stage.world.api.cutWatches('extender-*');
    await stage.seconds(20);
    const names = await stage.ask(12, PLAIN);
    stage.killLeader('extender');
    await untilBound(stage, names, 10);
    await stage.seconds(30);
    const first = bound(stage, names);
    stage.expect('no more are', first.length === 10);
    await stage.endPods(...first.slice(0, 3));
    await stage.untilServed(...names.filter((name) => !first.includes(name)));
  },
};

/** Eight addresses are left in the subnet, of which each ENI takes one, for nodes that have none yet and places for more. Each that comes back is bound again. */
export const emptySubnet: Story = {
  title: 'no Pod is bound for which its subnet has no address, whatever its node may have',
  world: {
    ...PROGRAMS,
    cloud: { ...CLOUD, subnets: CLOUD.subnets.filter(({ subnetId }) => subnetId !== 'subnet-podsb000') },
    flags: ['--ip-min-warm-target=0', '--ip-max-warm-target=0'],
  },
  tell: async (stage) => {
    await stage.node();
    await stage.node();
    const { pool } = stage.world.host.model.state.subnet('subnet-podsa000');
    while (pool.free > 8) pool.take();
    // Until ipamd has published that.
    await stage.minutes(1);
    stage.begin();
    const names = await stage.ask(10, PLAIN);
    await stage.until('the subnet is empty', () => pool.free === 0 && bound(stage, names).length >= 6);
    await stage.minutes(1);
    const before = bound(stage, names);
    const [first = '', second = ''] = before;
    await stage.endPods(first);
    await untilBound(stage, names, before.length);
    // Those that still wait are refused all that time.
    await stage.minutes(3);
    await stage.endPods(second);
  },
};

const LOSSES: readonly ExtenderFault[] = [
  { verb: 'bind', what: 'lose-answer' },
  { verb: 'bind', what: { lateMs: 20_000 } },
  { verb: 'filter', what: 'lose-request' },
  { verb: 'prioritize', what: 'lose-answer' },
  { verb: 'bind', what: 'lose-request' },
];

const LATE: ExtenderFault = { verb: 'bind', what: { lateMs: 3_000 } };

/**
 * Requests and answers are lost and late, the leader stands still for longer than kube-scheduler waits, and then all die. At last there
 * is room for three of five that fit, one of which is bound when nobody waits for that any more.
 */
export const silentExtender: Story = {
  title: 'Pods wait for an extender that does not answer, and are bound once',
  world: PROGRAMS,
  tell: async (stage) => {
    await stage.node(SMALL);
    await stage.node(SMALL);
    stage.begin();
    stage.world.scheduler?.faults.push(...LOSSES);
    const names = await stage.ask(4, PLAIN);
    await stage.untilServed(...names);
    const later = await stage.ask(3, PLAIN);
    await stage.pauseLeader(18, 'extender');
    for (const { life } of stage.world.extenders) life?.kill();
    await stage.untilServed(...later);
    stage.world.scheduler?.faults.push(...Array.from({ length: 5 }, () => LATE));
    stage.stray('create pods', 10, 'extender');
    const last = await stage.ask(5, PLAIN);
    // Those that were refused try it again after a second.
    await stage.seconds(3.5);
    const one = await stage.ask(1, PLAIN);
    await untilBound(stage, [...names, ...later, ...last, ...one], 10);
  },
};

/** A person has set `ignorable: true`. Extenders that start read Pods late. */
export const ignoredExtender: Story = {
  title: 'Pods that were bound without the extender count when it is back',
  world: { ...PROGRAMS, isExtenderIgnorable: true },
  tell: async (stage) => {
    await stage.node(SMALL);
    await stage.node(SMALL);
    stage.begin();
    const list = { userAgent: 'extender-*', verbs: ['list'], resources: ['pods'] } as const;
    stage.apiFault({ ...list, action: { kind: 'delay', ms: 25_000 } });
    for (const { life } of stage.world.extenders) life?.kill();
    const names = await stage.ask(4, PLAIN);
    await stage.untilServed(...names);
    await stage.until('it is back', () => stage.world.isLed);
    const more = await stage.ask(8, PLAIN);
    await untilBound(stage, [...names, ...more], 10);
    await stage.seconds(30);
  },
};

/** A rule keeps the addresses of Pods. The webhook dies and comes back, and reads the rules late. */
export const admittedPods: Story = {
  title: 'no Pod is let in without its request and its rule while the webhook comes and goes',
  world: { ...worldOf(), ...PROGRAMS },
  tell: async (stage) => {
    await stage.node(SMALL);
    await stage.node(SMALL);
    const metadata = { name: 'web', namespace: 'default' };
    const spec = { podLabels: { app: 'web' }, deletePolicy: 'Never' };
    const rule = { apiVersion: API_VERSION, kind: 'StaticIPConfig', metadata, spec };
    await stage.people(stage.world.admin.create(STATIC_IP_CONFIGS, rule));
    await stage.seconds(5);
    stage.begin();
    const pod = { ...PLAIN, labels: { app: 'web' } };
    await stage.askFor('web-0', pod);
    await stage.untilServed('web-0');
    const ip = stage.ipOf('web-0');
    stage.apiFault({ userAgent: 'webhook-*', verbs: ['list'], action: { kind: 'delay', ms: 8_000 } });
    for (const { life } of stage.world.webhooks) life?.kill();
    for (const name of ['web-1', 'web-2', 'web-3']) {
      await stage.askFor(name, pod);
      const annotations = objectOf(stage, 'pods', name)?.metadata.annotations;
      stage.expect(`${name} has its rule`, annotations?.[POD_ANNOTATION.deletePolicy] === 'Never');
    }
    await stage.endPods('web-0');
    await stage.askFor('web-0', pod);
    await stage.untilServed('web-0', 'web-1', 'web-2', 'web-3');
    stage.expect('it has its address again', stage.ipOf('web-0') === ip);
  },
};
