import { RESOURCE_KINDS } from '../../../crd/kinds.ts';
import { API_GROUP } from '../../../crd/names.ts';
import { CUSTOM_RESOURCE_DEFINITIONS } from '../../../kube/resource-types.ts';
import type { Stage } from '../stage.ts';
import type { Story } from '../story.ts';
import { WHOLE } from './whole-nodes.ts';

/** The replica that takes over saw the object of the node last as it was minutes ago. */
export const lateWatch: Story = {
  title: 'a leader whose watch is minutes behind undoes nothing that the former one wrote',
  tell: async (stage) => {
    const node = await stage.node();
    const standby = stage.standby();
    stage.apiFault({
      userAgent: standby,
      verbs: ['watch'],
      resources: ['nodeeniconfigs'],
      action: { kind: 'watch-delay', ms: 180_000 },
    });
    stage.world.api.cutWatches(standby);
    await stage.seconds(20);
    stage.begin();
    await stage.pods(node, 8);
    await stage.end(node, 6);
    await stage.seconds(30);
    stage.killLeader();
    await stage.pods(node, 3);
    await stage.minutes(5);
    stage.expect('nothing was mended', stage.events('ObjectMended').length === 0);
  },
};

/** Somebody writes a status right after another leads, as the last write of the former leader does, and again later. */
export const formerWrites: Story = {
  title: 'a late write of the former leader is not undone, one of others is, and what it lost is found in the cloud',
  tell: async (stage) => {
    const node = await stage.node();
    await stage.pods(node, 3);
    await stage.minutes(1);
    const change = async (): Promise<void> => {
      stage.killLeader();
      await stage.until('another leads', () => stage.world.leader !== undefined);
      await stage.seconds(2);
    };
    stage.begin();
    await change();
    const [late, edited] = ['2026-01-02T03:04:05Z', '2026-02-02T02:02:02Z'];
    await stage.patchNec(node, { status: { describedAt: late } });
    await stage.minutes(2);
    const describedAt = () => stage.nec(node).status.describedAt;
    stage.expect('it stays', describedAt() === late && stage.events('ObjectMended').length === 0);
    await stage.patchNec(node, { status: { describedAt: edited } });
    await stage.seconds(10);
    stage.expect('it is as before', describedAt() === late && stage.events('ObjectMended').length === 1);
    await change();
    const [dropped = ''] = stage.supply(node).filter((ip) => !node.agent.addresses.includes(ip));
    const { eniInfos = [], routeENIIPs = 0 } = stage.nec(node).status;
    const left = eniInfos.map((eni) => ({ ...eni, addresses: eni.addresses?.filter(({ ip }) => ip !== dropped) }));
    await stage.patchNec(node, { status: { eniInfos: left, routeENIIPs: routeENIIPs - 1 } });
    stage.expect('it is not in the object', !stage.supply(node).includes(dropped));
    await stage.until('it is found in the cloud', () => stage.supply(node).includes(dropped), 90_000);
  },
};

/** For twenty minutes lists are empty for ipamd, as of an API server that has lost its objects. */
export const emptyLists: Story = {
  title: 'lists that are empty release nothing',
  tell: async (stage) => {
    const node = await stage.node();
    await stage.pods(node, 3);
    const before = stage.enis(node).length;
    stage.begin();
    const heal = stage.apiFault({ resources: ['nodes', 'pods'], action: { kind: 'empty-list' } });
    stage.world.api.cutWatches('ipamd-*');
    await stage.minutes(20);
    stage.expect('all ENIs are there', stage.enis(node).length === before);
    heal();
    stage.world.api.cutWatches('ipamd-*');
    await stage.pods(node, 5);
  },
};

/** etcd is restored from a backup of when the node had more addresses, and nobody leads for a while. */
export const restoredServer: Story = {
  title: 'no Pod gets an address of a supply that is over',
  tell: async (stage) => {
    const node = await stage.node();
    await stage.pods(node, 6);
    const backup = stage.backup();
    const before = stage.supply(node).length;
    stage.begin();
    await stage.end(node, 6);
    await stage.until('addresses went back', () => stage.supply(node).length < before - 2, 1_200_000);
    stage.killAll();
    stage.restore(backup);
    await stage.seconds(1);
    await stage.pods(node, 9);
    await stage.minutes(3);
  },
};

/** etcd is restored under API servers that go on: no watch ends, and revisions are lower. Nothing changes the objects afterwards. */
export const survivingWatches: Story = {
  title: 'a watch that survives a restore of the API server hides nothing',
  tell: async (stage) => {
    const node = await stage.node();
    await stage.pods(node, 2);
    await stage.minutes(2);
    const backup = stage.backup();
    stage.begin();
    await stage.pods(node, 7);
    await stage.minutes(2);
    stage.restore(backup, { keepsWatches: true });
    await stage.minutes(2);
    stage.expect(
      'the object has the addresses of the Pods',
      node.agent.addresses.every((ip) => stage.supply(node).includes(ip)),
    );
  },
};

/** The same while ipamd does not reach the API server: once it does, revisions are those that it knows. */
export const passedRevisions: Story = {
  ...survivingWatches,
  title: 'a watch that broke over a restore of the API server is not continued',
  tell: async (stage) => {
    const node = await stage.node();
    await stage.pods(node, 2);
    await stage.minutes(2);
    const backup = stage.backup();
    stage.begin();
    await stage.pods(node, 7);
    const { revision } = stage.world.api.api.store;
    const heal = stage.partition('ipamd-*');
    stage.restore(backup);
    for (let turn = 0; stage.world.api.api.store.revision <= revision; turn++)
      await stage.patchNec(node, { metadata: { annotations: { turn: `${turn}` } } });
    heal();
    await stage.minutes(2);
    stage.expect(
      'the object has the addresses of the Pods',
      node.agent.addresses.every((ip) => stage.supply(node).includes(ip)),
    );
  },
};

/** The offers of an etcd of before: their addresses were taken back and given to Pods since. */
export const restoredOffers: Story = {
  title: 'no address is taken by an offer that a restored API server brought back',
  tell: async (stage) => {
    const node = await stage.node();
    await stage.pods(node, 4);
    await stage.until('the node has spare addresses again', () => stage.isReady(node));
    await stage.seconds(5);
    const deaf = stage.partition('ipamd-*');
    await stage.end(node, 4);
    await stage.until('an address is offered', () => (stage.nec(node).spec.releasableIPs?.length ?? 0) > 0);
    const pods = await stage.make(node, 9);
    const backup = stage.backup();
    stage.begin();
    await stage.until('all have addresses', () => pods.every((name) => stage.ipOf(name) !== undefined));
    // Neither agent nor kubelet of the node reach the API server for a while.
    const clients = [`agent-${node.name}`, `kubelet-${node.name}`, 'agents'];
    const cut = clients.map((client) => stage.partition(client));
    stage.killAll();
    stage.restore(backup);
    deaf();
    await stage.minutes(5);
    for (const end of cut) end();
    await stage.minutes(2);
  },
};

/** Ends all definitions, and with them all objects of this project: people delete them, or the store loses them at once. */
async function loseDefinitions({ world }: Stage, isWiped: boolean): Promise<void> {
  const { store } = world.api.api;
  const kinds = RESOURCE_KINDS.map(({ plural }) => `${API_GROUP}/${plural}`);
  for (const key of isWiped ? [...kinds, 'apiextensions.k8s.io/customresourcedefinitions'] : [])
    for (const object of store.list(key)) store.remove(key, object);
  for (const { plural } of isWiped ? [] : RESOURCE_KINDS)
    await world.run(world.admin.delete(CUSTOM_RESOURCE_DEFINITIONS, { name: `${plural}.${API_GROUP}` }));
}

/** The two replicas look at other moments: now the leader is the first to notice, and now the other. */
export const lostDefinitions: Story = {
  title: 'definitions that are lost cost no Pod its address',
  tell: async (stage) => {
    const node = await stage.node();
    await stage.pods(node, 4);
    await stage.until('the node has what it wants', () => stage.isReady(node));
    const enisOf = () => JSON.stringify(stage.enis(node).map(({ eniId, ips }) => [eniId, [...ips.keys()]]));
    const before = enisOf();
    stage.begin();
    for (const [turn, seconds] of [0, 3, 6, 9].entries()) {
      await stage.seconds(seconds);
      await loseDefinitions(stage, turn % 2 > 0);
      await stage.minutes(2);
      await stage.until('the node is ready again', () => stage.isReady(node));
      stage.expect('no ENI or address was made or released', enisOf() === before);
    }
    stage.expect('it is told', stage.events('DefinitionsLost').length > 0);
    stage.expect('its end is told', stage.events('DefinitionsRestored').length > 0);
    await stage.pods(node, 3);
  },
};

/** The same beside real agents, whose journals are all that they have meanwhile. */
export const lostSupplies: Story = {
  ...lostDefinitions,
  title: 'Pods keep their network while definitions are lost',
  world: WHOLE,
};

/** The cloud refuses for a minute what the leader has on record, and meanwhile the leader does not reach its lock. */
export const cutOffLeader: Story = {
  title: 'a leader that does not reach its lock calls nothing any more',
  tell: async (stage) => {
    const node = await stage.node();
    stage.begin();
    stage.cloudFault({
      fault: { kind: 'error', code: 'RequestLimitExceeded' },
      actions: ['AssignPrivateIpAddresses'],
      probability: 0.97,
    });
    const made = await stage.make(node, 8);
    await stage.until('a call is on record', () => (stage.nec(node).status.intents?.length ?? 0) > 0);
    const heal = stage.partition(stage.world.leader?.life?.name ?? '');
    await stage.seconds(40);
    heal();
    stage.heal();
    await stage.until('all have addresses', () => made.every((name) => stage.ipOf(name) !== undefined));
  },
};

/** A leader stands still in the midst of its work for longer than its lease, while another leads. */
export const frozenLeader: Story = {
  title: 'a leader that stood still does no harm when it goes on',
  tell: async (stage) => {
    const node = await stage.node();
    stage.begin();
    await stage.make(node, 8);
    await stage.until('a call is on record', () => (stage.nec(node).status.intents?.length ?? 0) > 0);
    await stage.pauseLeader(60);
    await stage.pods(node, 2);
    await stage.end(node, 8);
  },
};
