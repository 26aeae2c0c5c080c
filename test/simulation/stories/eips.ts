import { EIP_TAG } from '../../../crd/cloud-tags.ts';
import { customResourceDefinition } from '../../../crd/custom-resource-definition.ts';
import { EIP_CLAIM_KIND } from '../../../crd/eip-claim.ts';
import { POD_ANNOTATION } from '../../../crd/names.ts';
import { EIP_CLAIMS, PODS } from '../../../kube/resource-types.ts';
import { recordOf, recordsOf, textOf } from '../../../runtime/json.ts';
import type { Fault } from '../../../sim/vpc/api/faults.ts';
import type { ModelEip } from '../../../sim/vpc/api/model/types.ts';
import type { Machine } from '../machine.ts';
import type { Stage } from '../stage.ts';
import type { Story } from '../story.ts';
import { between } from '../streams.ts';
import { CLOUD } from '../world.ts';

/** Annotations of Pods with EIPs of 20 Mbps. */
export const EIP_MADE = {
  annotations: { [POD_ANNOTATION.eipAttributes]: JSON.stringify({ InternetMaxBandwidthOut: 20 }) },
};
/** The same, whose EIPs are kept. */
export const EIP_KEPT = { annotations: { ...EIP_MADE.annotations, [POD_ANNOTATION.eipDeletePolicy]: 'Never' } };
/** A smaller instance may bind one EIP. */
const LARGE = { cores: 32 };
/** The cloud and the claims are compared each minute. */
const AUDITED = { flags: ['--sync-interval=1m', '--orphan-grace=2m'] };
const refOf = (name: string) => ({ namespace: 'default', name });

function claimOf({ world }: Stage, name: string) {
  const claim = world.objects('eipclaims').find(({ metadata }) => metadata.name === name);
  return claim === undefined ? undefined : recordOf(claim['status']);
}

/** Why a claim is not ready. */
function reasonOf(stage: Stage, name: string): string {
  const conditions = recordsOf(recordOf(claimOf(stage, name))['conditions']);
  return textOf(conditions.find(({ status }) => status === 'False')?.['reason']);
}

async function untilServed(stage: Stage, ...names: readonly string[]): Promise<void> {
  await stage.until(
    `${names.join(' ')} have EIPs`,
    () => names.every((name) => stage.eipOf(name) !== undefined),
    3_600_000,
  );
}

async function untilRetained(stage: Stage, name: string): Promise<void> {
  await stage.until(`${name} is retained`, () => claimOf(stage, name)?.['phase'] === 'Retained');
}

/** Somebody has an EIP, by hand or with the tags of another program. */
function lend({ world }: Stage, tags: Readonly<Record<string, string>> = {}): ModelEip {
  const { state } = world.host.model;
  const eipId = state.nextId('eip');
  const eip: ModelEip = {
    ...{ eipId, name: 'by-hand', publicIp: `203.0.113.${state.eips.size + 1}`, status: 'UNBIND' },
    ...{ bandwidthMbps: 1, isp: 'BGP', tags },
  };
  state.eips.set(eipId, eip);
  state.touchEip(eip);
  return eip;
}

/** People take the finalizer off a claim, and delete it. */
async function dropClaim(stage: Stage, name: string): Promise<void> {
  const body = [{ op: 'remove', path: '/metadata/finalizers' }];
  await stage.people(stage.world.admin.patch(EIP_CLAIMS, refOf(name), { kind: 'json', body }));
  await stage.people(stage.world.admin.delete(EIP_CLAIMS, refOf(name)));
}

/** Two Pods with EIPs: one is kept and moves to another node, the other ends with its Pod. */
export const eips: Story = {
  title: 'each Pod has one EIP, and none is left',
  tell: async (stage) => {
    const [first, second] = [await stage.node(LARGE), await stage.node(LARGE)];
    stage.begin();
    await stage.pod('made-0', first, EIP_MADE);
    await stage.pod('kept-0', first, EIP_KEPT);
    await stage.until('both are served', () => stage.boundEips().length === 2);
    const eip = stage.eipOf('kept-0');
    await stage.endPods('made-0', 'kept-0');
    await stage.pod('kept-0', second, EIP_KEPT);
    await stage.until('it has its EIP again', () => stage.eipOf('kept-0') !== undefined);
    stage.expect('it is the same', stage.eipOf('kept-0') === eip);
    await stage.until('the other is released', () => stage.world.host.model.state.eips.size === 1, 3_600_000);
  },
};

/** Descriptions of EIPs are of before, while Pods get them, move and end. */
export const staleEips: Story = {
  title: 'an EIP is asked for once, and bound and released, whatever descriptions of before show',
  tell: async (stage) => {
    const [first, second] = [await stage.node(LARGE), await stage.node(LARGE)];
    stage.begin();
    const heal = stage.cloudFault({ fault: { kind: 'stale', ms: 40_000 }, actions: ['DescribeAddresses'] });
    await stage.pod('made-0', first, EIP_MADE);
    await stage.pod('kept-0', first, EIP_KEPT);
    await untilServed(stage, 'made-0', 'kept-0');
    for (const node of [second, first]) {
      await stage.endPods('kept-0');
      await stage.pod('kept-0', node, EIP_KEPT);
      await untilServed(stage, 'kept-0');
    }
    await stage.endPods('made-0');
    await stage.until('the other is released', () => stage.world.host.model.state.eips.size === 1, 3_600_000);
    stage.expect('two were asked for', stage.sent('AllocateAddresses') === 2);
    heal();
  },
};

/** Pods name EIPs that somebody lent: by number, and without one. */
export const lentEips: Story = {
  title: 'EIPs of a list go to Pods by number, to whoever is next, and back to whom they are of',
  tell: async (stage) => {
    const node = await stage.node(LARGE);
    const list = [lend(stage), lend(stage)];
    const listed = { annotations: { [POD_ANNOTATION.eipIdList]: list.map(({ eipId }) => eipId).join() } };
    stage.begin();
    for (const name of ['db-1', 'db-0', 'db-2']) await stage.pod(name, node, listed);
    await untilServed(stage, 'db-0', 'db-1');
    await stage.until('db-2 has failed', () => claimOf(stage, 'db-2')?.['phase'] === 'Failed');
    const given = ['db-0', 'db-1'].map((name) => stage.eipOf(name));
    stage.expect('by their numbers', given.join() === list.map(({ eipId }) => eipId).join());
    await stage.endPods('db-0', 'db-1', 'db-2');
    // What has ended is known before the watch tells.
    const fault = { verbs: ['watch'], resources: ['eipclaims'], action: { kind: 'watch-delay', ms: 600_000 } } as const;
    const heal = stage.apiFault(fault);
    stage.world.api.cutWatches('ipamd-*');
    for (const name of ['api-a', 'api-b', 'api-c']) await stage.pod(name, node, listed);
    await stage.until('two are in use', () => stage.boundEips().length === 2);
    const first = ['api-a', 'api-b', 'api-c'].find((name) => stage.eipOf(name) !== undefined) ?? '';
    await stage.endPods(first);
    const others = ['api-a', 'api-b', 'api-c'].filter((name) => name !== first);
    await untilServed(stage, ...others);
    heal();
    stage.world.api.cutWatches('ipamd-*');
    await stage.endPods(...others);
    await stage.until('both are free', () => list.every(({ status }) => status === 'UNBIND'));
  },
};

/** Annotations of Pods are wrong, corrected, and wrong again; one EIP is somebody else's. */
export const wrongEips: Story = {
  title: 'annotations that are wrong are told once, and an EIP in use is taken from nobody',
  tell: async (stage) => {
    const [node, other] = [await stage.node(LARGE), await stage.node(LARGE)];
    stage.begin();
    const { eipAttributes, eipIdList, eipDeletePolicy } = POD_ANNOTATION;
    const wrong = {
      json: { [eipAttributes]: '{"Bandwidth":' },
      speed: { [eipAttributes]: '{"Bandwidth":0}' },
      list: { [eipIdList]: 'eip-1;eip-2' },
      policy: { [eipAttributes]: '', [eipDeletePolicy]: 'Sometimes' },
    };
    for (const [name, annotations] of Object.entries(wrong)) await stage.pod(name, node, { annotations });
    await stage.pod('right', node, EIP_MADE);
    await untilServed(stage, 'right');
    await stage.minutes(1);
    const told = () => {
      const events = stage.world.objects('events').filter(({ reason }) => reason === 'EIPInvalid');
      return events.reduce((sum, { count }) => sum + Number(count ?? 1), 0);
    };
    stage.expect('each is told', told() === 4 && stage.world.objects('eipclaims').length === 1);
    for (const value of [null, wrong.speed[eipAttributes]]) {
      const body = { metadata: { annotations: { [eipAttributes]: value } } };
      await stage.people(stage.world.admin.patch(PODS, refOf('speed'), { kind: 'merge', body }));
      await stage.seconds(10);
    }
    await stage.minutes(1);
    stage.expect('and told again', told() === 5 && stage.boundEips().length === 1);
    const theirs = lend(stage);
    const [eni] = stage.enis(other);
    const address = [...(eni?.ips.values() ?? [])].find(({ isPrimary }) => !isPrimary);
    if (eni === undefined || address === undefined) throw new Error('the other node has no address');
    Object.assign(theirs, { status: 'BIND_ENI', binding: { eniId: eni.eniId, ip: address.ip, isOfInstance: false } });
    address.eipId = theirs.eipId;
    await stage.pod('db-0', node, { annotations: { [eipIdList]: theirs.eipId } });
    await stage.until('it has failed', () => claimOf(stage, 'db-0')?.['phase'] === 'Failed');
    stage.expect('it says whose', textOf(claimOf(stage, 'db-0')?.['message']).includes(`ENI ${eni.eniId}`));
    await stage.endPods('db-0');
    await stage.minutes(1);
    stage.expect('it is theirs', theirs.binding?.ip === address.ip);
  },
};

/** More Pods than EIPs of the account, and than those of a node. */
export const eipLimits: Story = {
  title: 'limits of EIPs are told, asked for seldom, and given to the next',
  world: { cloud: { ...CLOUD, eips: 0, eipsPerDay: 100 } },
  tell: async (stage) => {
    const [large, small] = [await stage.node(LARGE), await stage.node()];
    stage.begin();
    const names = ['web-0', 'web-1', 'web-2', 'web-3'];
    for (const name of names) await stage.pod(name, large, EIP_MADE);
    await stage.minutes(60);
    const calls = stage.sent('AllocateAddresses');
    stage.expect(`${calls} calls in an hour are few`, calls >= 3 && calls < 30);
    const text = 'Failed to create eip: failed to allocate eip: [TencentCloudSDKError] Code=AddressQuotaLimitExceeded';
    stage.expect(
      'people find the words of the product',
      stage.events('FailedAllocateEIP').some((one) => one.startsWith(text)),
    );
    Object.assign(stage.world.host.model.state.spec, { eips: 20 });
    await untilServed(stage, ...names);
    await stage.pod('first', small, EIP_MADE);
    await untilServed(stage, 'first');
    await stage.pod('second', small, EIP_MADE);
    await stage.until('it is told', () => reasonOf(stage, 'second') === 'EIPLimitOfNode');
    stage.expect('none is made for it', stage.world.host.model.state.eips.size === 5);
    await stage.endPods('first');
    await untilServed(stage, 'second');
  },
};

/** People unbind, release and force out; what has the tags of TKE alone is not ours. */
export const eipsByHand: Story = {
  title: 'what people do to EIPs and claims is mended, and what nobody has is released',
  world: AUDITED,
  tell: async (stage) => {
    const node = await stage.node(LARGE);
    stage.begin();
    for (const name of ['web-0', 'web-1']) await stage.pod(name, node, EIP_KEPT);
    await untilServed(stage, 'web-0', 'web-1');
    const { state } = stage.world.host.model;
    const unbind = (): void => {
      const { eniId = '', ip = '' } = state.eips.get(stage.eipOf('web-0') ?? '')?.binding ?? {};
      const address = state.enis.get(eniId)?.ips.get(ip);
      if (address !== undefined) state.unbindEip(address);
    };
    unbind();
    stage.expect('it is unbound', stage.eipOf('web-0') === undefined);
    await untilServed(stage, 'web-0');
    const lost = stage.eipOf('web-0') ?? '';
    unbind();
    state.eips.delete(lost);
    await untilServed(stage, 'web-0');
    stage.expect('it is said', stage.events('EIPGone').length > 0);
    const before = stage.eipOf('web-0');
    const tags = { [EIP_TAG.cluster]: 'cls-sim00001', [EIP_TAG.created]: 'true' };
    const foreign = [lend(stage, tags), lend(stage, { ...tags, [EIP_TAG.claim]: '' })];
    await stage.endPods('web-1');
    await untilRetained(stage, 'web-1');
    for (const name of ['web-0', 'web-1']) await dropClaim(stage, name);
    await stage.until('the orphan is released', () => stage.events('OrphanEIPReleased').length > 0, 1_200_000);
    await untilServed(stage, 'web-0');
    stage.expect('it has its EIP by the tag', stage.eipOf('web-0') === before);
    stage.expect('those of others are there', state.eips.size === 1 + foreign.length);
  },
};

/** Lists of Pods and of claims are empty for twenty minutes. */
export const eipLists: Story = {
  title: 'an EIP stays with a Pod and a claim that lists lack',
  world: AUDITED,
  tell: async (stage) => {
    const node = await stage.node(LARGE);
    for (const name of ['web-0', 'web-1']) await stage.pod(name, node, EIP_KEPT);
    await stage.pod('web-2', node, EIP_MADE);
    await untilServed(stage, 'web-0', 'web-1', 'web-2');
    await stage.endPods('web-1');
    await untilRetained(stage, 'web-1');
    stage.begin();
    for (const resources of [['pods'], ['eipclaims']]) {
      const heal = stage.apiFault({ resources, action: { kind: 'empty-list' } });
      stage.world.api.cutWatches('ipamd-*');
      await stage.minutes(20);
      stage.expect('all are there', stage.world.host.model.state.eips.size === 3 && stage.boundEips().length === 2);
      heal();
      stage.world.api.cutWatches('ipamd-*');
    }
  },
};

/** EIPs are kept for an hour, one for five minutes; and people delete a claim into which one wrote another EIP. */
export const eipExpiry: Story = {
  title: 'a kept EIP goes when its time is over, and never one that a hand wrote into a claim',
  world: { flags: [...AUDITED.flags, '--claim-expired-duration=1h'], replicas: 1 },
  tell: async (stage) => {
    const node = await stage.node(LARGE);
    const theirs = lend(stage);
    const short = { annotations: { ...EIP_KEPT.annotations, [POD_ANNOTATION.claimExpiredDuration]: '5m' } };
    stage.begin();
    for (const name of ['web-0', 'web-2']) await stage.pod(name, node, EIP_KEPT);
    await stage.pod('web-1', node, short);
    await untilServed(stage, 'web-0', 'web-1', 'web-2');
    await stage.endPods('web-0', 'web-1', 'web-2');
    for (const name of ['web-0', 'web-1', 'web-2']) await untilRetained(stage, name);
    await stage.seconds(270);
    stage.expect('the short one is kept', claimOf(stage, 'web-1') !== undefined);
    // A leader that lives undoes it.
    stage.killAll();
    const body = { status: { eipID: theirs.eipId, isOurs: true } };
    await stage.people(stage.world.admin.patch(EIP_CLAIMS, refOf('web-2'), { kind: 'merge', body }));
    await stage.people(stage.world.admin.delete(EIP_CLAIMS, refOf('web-2')));
    await stage.minutes(2);
    stage.expect(
      'two claims are gone',
      ['web-1', 'web-2'].every((name) => claimOf(stage, name) === undefined),
    );
    stage.expect('it is told', stage.events('EIPLeft').length > 0);
    stage.expect('the long one is kept', claimOf(stage, 'web-0') !== undefined);
    await stage.minutes(60);
    stage.expect('none of ours is left', stage.world.host.model.state.eips.size === 1);
  },
};

/** A value of each field of an EIPClaim's status that the schema takes and nobody wrote. */
const OTHER: Readonly<Record<string, unknown>> = {
  ...{ phase: 'Failed', message: 'nonsense', conditions: [], intents: [], eipID: 'eip-invented', publicIP: '1.2.3.4' },
  ...{ privateIP: '10.1.9.9', eniID: 'eni-invented', nodeName: 'nowhere', allocations: 9, isOurs: false },
  retainedSince: '2020-01-01T00:00:00Z',
};

/** Each field once left out, which a merge patch does by null, and once with another value. */
function editsOf(): readonly Readonly<Record<string, unknown>>[] {
  const { openAPIV3Schema } = customResourceDefinition(EIP_CLAIM_KIND).spec.versions[0].schema;
  const status = recordOf(recordOf(recordOf(openAPIV3Schema)['properties'])['status']);
  return Object.keys(recordOf(status['properties'])).flatMap((field) => {
    if (!Object.hasOwn(OTHER, field)) throw new Error(`${field} has no edit here`);
    return [{ [field]: null }, { [field]: OTHER[field] }];
  });
}

/** People edit each field of the status of a claim in use and of one that is kept, with and without a leader. */
export const editedEips: Story = {
  title: 'whatever is edited in an EIPClaim, its EIP stays, and no other is made',
  world: AUDITED,
  tell: async (stage) => {
    const node = await stage.node(LARGE);
    const names = ['web-0', 'web-1'];
    for (const name of names) await stage.pod(name, node, EIP_KEPT);
    await untilServed(stage, ...names);
    await stage.endPods('web-1');
    await untilRetained(stage, 'web-1');
    await stage.minutes(1);
    stage.begin();
    const eips = () => JSON.stringify([...stage.world.host.model.state.eips.values()]);
    const statuses = () => JSON.stringify(names.map((name) => fieldsOf(claimOf(stage, name))));
    const [before, said] = [eips(), statuses()];
    const edit = async (status: object): Promise<void> => {
      for (const name of names) {
        const patch = { kind: 'merge', body: { status } } as const;
        await stage.people(stage.world.admin.patch(EIP_CLAIMS, refOf(name), patch).catch(() => {}));
      }
    };
    for (const status of editsOf()) {
      await edit(status);
      await stage.seconds(5);
      stage.expect(`all is as before: ${JSON.stringify(status)}`, eips() === before && statuses() === said);
    }
    for (const podUID of [null, 'none']) {
      const patch = { kind: 'merge', body: { spec: { podUID } } } as const;
      await stage.people(stage.world.admin.patch(EIP_CLAIMS, refOf('web-0'), patch));
      await stage.minutes(1);
      stage.expect('it has its EIP on', eips() === before && stage.eipOf('web-0') !== undefined);
    }
    stage.expect(
      'it is told',
      stage.events('ObjectMended').some((text) => text.includes('eipID')),
    );
    for (const status of editsOf()) {
      stage.killAll();
      await edit(status);
      await stage.minutes(2);
      stage.expect(`the EIPs stay: ${JSON.stringify(status)}`, eips() === before);
    }
    await stage.pod('web-1', node, EIP_KEPT);
    await untilServed(stage, 'web-1');
  },
};

/** Without conditions, which have times. */
function fieldsOf(status: object | undefined): unknown {
  return Object.entries(status ?? {})
    .filter(([field]) => field !== 'conditions')
    .sort();
}

const ACTIONS = ['AllocateAddresses', 'AssociateAddress', 'DisassociateAddress', 'ReleaseAddresses'];
const FAULTS: readonly Fault[] = [
  { kind: 'hang' },
  { kind: 'hang', after: true },
  { kind: 'reset' },
  { kind: 'reset', after: true },
  { kind: 'error', code: 'InternalError', after: true },
  { kind: 'error', code: 'InvalidAddressIdStatus.NotPermit' },
  { kind: 'error', code: 'UnauthorizedOperation' },
  { kind: 'error', code: 'RequestLimitExceeded' },
  { kind: 'task', fate: 'fail' },
  { kind: 'task', fate: 'vanish' },
  { kind: 'slow-task', ms: 60_000 },
];
const TURNS = 20;

/** Pods with EIPs that are made, kept and lent come, move and go while calls fail and leaders die, by chance. */
export const eipsInStorm: Story = {
  title: 'each Pod has one EIP and none is too many through faults and deaths',
  world: { ...AUDITED, cloud: { ...CLOUD, eipsPerDay: 1_000 } },
  tell: async (stage) => {
    const draw = stage.world.streams.of('EIPs in a storm');
    const below = (count: number): number => Math.floor(draw() * count);
    const nodes: readonly Machine[] = [await stage.node({ cores: 12 }), await stage.node({ cores: 12 })];
    const list = [lend(stage), lend(stage)].map(({ eipId }) => eipId).join();
    const kinds = { kept: EIP_KEPT, made: EIP_MADE, lent: { annotations: { [POD_ANNOTATION.eipIdList]: list } } };
    const alive = new Set<string>();
    stage.begin();
    for (const fault of FAULTS) stage.cloudFault({ fault, actions: ACTIONS, probability: 0.03 });
    for (let turn = 0; turn < TURNS; turn++) {
      const kind = (['kept', 'made', 'lent'] as const)[below(3)] ?? 'kept';
      const name = `${kind}-${below(2)}`;
      const node = nodes[below(2)];
      if (node === undefined) throw new Error('there is no node');
      if (alive.delete(name)) await stage.endPods(name);
      else await stage.pod(name, node, kinds[kind]);
      if (stage.ipOf(name) !== undefined) alive.add(name);
      if (draw() < 0.25) stage.killLeader();
      await stage.seconds(between(draw, [0, 20]));
    }
    stage.heal();
    await stage.endPods(...alive);
    for (const name of ['kept-0', 'kept-1'])
      await stage.people(stage.world.admin.delete(EIP_CLAIMS, refOf(name)).catch(() => {}));
    await stage.until('only what is lent is left', () => stage.world.host.model.state.eips.size === 2, 3_600_000);
  },
};
