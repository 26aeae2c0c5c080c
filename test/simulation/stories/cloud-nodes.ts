import { NODES } from '../../../kube/resource-types.ts';
import { recordOf, recordsOf } from '../../../runtime/json.ts';
import type { FaultRule as ApiFault } from '../../../sim/kube-api/faults.ts';
import type { Fault } from '../../../sim/vpc/api/faults.ts';
import type { Stage } from '../stage.ts';
import type { Story } from '../story.ts';

const UNINITIALIZED = { key: 'node.cloudprovider.kubernetes.io/uninitialized', value: 'true', effect: 'NoSchedule' };
const SHUTDOWN = 'node.cloudprovider.kubernetes.io/shutdown';
const SEEN = 'tke.cloud.tencent.com/seen-instance';
const VPC = '--vpc-id=vpc-0000test';
/** Nodes of others, which stay as they are. */
const FOREIGN = {
  aws: { spec: { providerID: 'aws:///eu-west-1/i-0123' } },
  native: { spec: { providerID: 'tencentcloud://kn-aaaa0001' } },
  super: { labels: { 'node.kubernetes.io/instance-type': 'eklet' } },
} as const;

function nodeOf(stage: Stage, name: string) {
  const node = stage.world.objects('nodes').find(({ metadata }) => metadata.name === name);
  const taints = recordsOf(recordOf(node?.['spec'])['taints']).map(({ key }) => key);
  const network = recordsOf(recordOf(node?.['status'])['conditions']).find(({ type }) => type === 'NetworkUnavailable');
  return {
    network: network?.['status'],
    isThere: node !== undefined,
    taints,
    isSeen: node?.metadata.annotations?.[SEEN] !== undefined,
  };
}

/** Registers a Node as its kubelet does, which waits for its cloud provider. */
async function register(
  stage: Stage,
  name: string,
  {
    spec = {},
    isReady = false,
    ...metadata
  }: { spec?: object; isReady?: boolean; labels?: object; annotations?: object },
) {
  const conditions = [{ type: 'Ready', status: isReady ? 'True' : 'False' }];
  const status = { addresses: [{ type: 'Hostname', address: name }], conditions };
  const object = {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name, ...metadata },
    spec: { taints: [UNINITIALIZED], ...spec },
  };
  await stage.people(stage.world.admin.create(NODES, { ...object, status } as never));
}

/** Writes the condition Ready, as kubelet and kube-controller-manager do. */
async function setReady(stage: Stage, name: string, status: 'True' | 'Unknown'): Promise<void> {
  if (!nodeOf(stage, name).isThere) return;
  const body = { status: { conditions: [{ type: 'Ready', status, reason: 'Kubelet' }] } };
  const written = stage.world.admin.patch(NODES, { name }, { kind: 'strategic', body, subresource: 'status' });
  // It may be deleted meanwhile.
  await stage.people(
    written.then(
      () => undefined,
      () => undefined,
    ),
  );
}

/** A Node is initialised, one is shut down and comes back, one is gone; those of others stay. */
export const cloudNodes: Story = {
  title: 'a Node is what its instance is, and is deleted when that is gone',
  world: { ccmFlags: [VPC, '--zone-labels=number', '--expect-routes=true'] },
  tell: async (stage) => {
    const { state } = stage.world.host.model;
    const [stays, stopped, gone] = [await stage.join(), await stage.join(), await stage.join()];
    for (const [name, node] of Object.entries(FOREIGN)) await register(stage, name, node);
    await stage.minutes(5);
    stage.begin();
    state.addInstance({
      instanceId: 'ins-fresh001',
      cores: 2,
      subnetId: 'subnet-nodes000',
      publicIps: ['203.0.113.9'],
    });
    const [address = ''] = state.enisOf('ins-fresh001').flatMap(({ ips }) => [...ips.keys()]);
    await register(stage, 'fresh', { annotations: { 'alpha.kubernetes.io/provided-node-ip': address } });
    await stage.until('it is initialised', () => !nodeOf(stage, 'fresh').taints.includes(UNINITIALIZED.key), 900_000);
    stage.expect('it has no network before that', nodeOf(stage, 'fresh').network === 'True');
    await stage.until('all are seen', () => [stays, stopped, gone].every(({ name }) => nodeOf(stage, name).isSeen));
    const instance = state.instances.get(stopped.instanceId);
    if (instance !== undefined) instance.state = 'STOPPED';
    await setReady(stage, stopped.name, 'Unknown');
    gone.turnOff();
    state.removeInstance(gone.instanceId);
    await setReady(stage, gone.name, 'Unknown');
    await stage.until('it is tainted', () => nodeOf(stage, stopped.name).taints.includes(SHUTDOWN), 900_000);
    await stage.until('it is deleted', () => !nodeOf(stage, gone.name).isThere, 900_000);
    if (instance !== undefined) instance.state = 'RUNNING';
    await setReady(stage, stopped.name, 'True');
    await stage.until('the taint is gone', () => !nodeOf(stage, stopped.name).taints.includes(SHUTDOWN), 900_000);
    for (const name of Object.keys(FOREIGN))
      stage.expect(`${name} waits for others`, nodeOf(stage, name).taints.includes(UNINITIALIZED.key));
    await setReady(stage, 'fresh', 'True');
  },
};

const CLOUD_FAULTS: readonly Fault[] = [
  { kind: 'empty' },
  { kind: 'stale', ms: 30_000 },
  { kind: 'reset' },
  { kind: 'http', status: 502 },
  { kind: 'error', code: 'InternalError' },
  { kind: 'error', code: 'RequestLimitExceeded' },
  { kind: 'error', code: 'UnauthorizedOperation' },
  { kind: 'error', code: 'UnsupportedRegion' },
  { kind: 'partial' },
  { kind: 'latency', ms: 9_000 },
];

const API_FAULTS: readonly ApiFault[] = [
  { verbs: ['list'], action: { kind: 'empty-list' } },
  { verbs: ['list', 'watch'], action: { kind: 'status', code: 410, reason: 'Expired' } },
  { verbs: ['get', 'list'], action: { kind: 'stale', changes: 6 } },
  { verbs: ['watch'], action: { kind: 'watch-end', ms: 700 } },
  { verbs: ['watch'], action: { kind: 'watch-delay', ms: 20_000 } },
  { verbs: ['patch', 'delete'], action: { kind: 'status', code: 409, reason: 'Conflict' } },
  { verbs: ['get', 'list', 'patch', 'delete'], action: { kind: 'status', code: 500, reason: 'InternalError' } },
  { verbs: ['patch', 'delete', 'create'], action: { kind: 'drop-after' } },
  { verbs: ['get', 'list', 'watch'], action: { kind: 'drop-before' } },
];
const TURNS = 20;
const PLACES = 5;

/** Nodes of one subnet, all of which may go at once. */
const MANY_INSTANCES: Story['world'] = {
  cloud: {
    vpcId: 'vpc-0000test',
    subnets: [{ subnetId: 'subnet-nodes000', zone: 'ap-guangzhou-3', cidr: '10.0.0.0/24' }],
  },
  flags: ['--default-network=tke-bridge'],
  ccmFlags: [VPC, '--node-release-percent=100'],
};

/** A Node that is not ready, whose instance the cloud lacks for so many seconds; it is ready from its return on where that is said. */
async function lack(stage: Stage, name: string, seconds: number, ready?: 'at its return' | 'unheard'): Promise<void> {
  const { state } = stage.world.host.model;
  const instanceId = `ins-${name}`;
  await setReady(stage, name, 'Unknown');
  await stage.seconds(1);
  state.removeInstance(instanceId);
  if (ready === 'unheard') {
    await stage.seconds(7);
    stage.apiFault({ userAgent: 'ccm-*', verbs: ['watch'], action: { kind: 'watch-delay', ms: 40_000 } });
    stage.world.api.cutWatches('ccm-*');
    await stage.seconds(1);
    await setReady(stage, name, 'True');
  }
  await stage.seconds(seconds);
  state.addInstance({ instanceId, cores: 2, subnetId: 'subnet-nodes000' });
  if (ready === 'at its return') await setReady(stage, name, 'True');
  await stage.seconds(20);
  stage.expect(`${name} stays`, nodeOf(stage, name).isThere);
}

/** The cloud lacks instances that are there: for a moment, while they are young, again after a while, and when their Nodes are ready. */
export const lackedInstances: Story = {
  title: 'no Node is deleted for an instance that the cloud lacks for a moment',
  world: MANY_INSTANCES,
  tell: async (stage) => {
    const { state } = stage.world.host.model;
    const make = async (name: string): Promise<void> => {
      state.addInstance({ instanceId: `ins-${name}`, cores: 2, subnetId: 'subnet-nodes000' });
      await register(stage, name, { spec: { providerID: `qcloud:///100003/ins-${name}` }, isReady: true });
      await stage.until(`${name} is seen`, () => nodeOf(stage, name).isSeen);
    };
    await stage.join();
    await make('old00001');
    await stage.minutes(3);
    stage.begin();
    await lack(stage, 'old00001', 9);
    await setReady(stage, 'old00001', 'True');
    for (let time = 0; time < 2; time++) await lack(stage, 'old00001', 6, 'at its return');
    await make('young001');
    await lack(stage, 'young001', 40);
    await setReady(stage, 'young001', 'True');
    await stage.minutes(3);
    await lack(stage, 'young001', 20, 'unheard');
  },
};

/** So many instances go at once, and so many Nodes may be deleted within an hour. */
const GOING = 7;
const AN_HOUR = 3;

/** Most instances go at once; leaders die, and hand over. */
export const manyGone: Story = {
  title: 'so many Nodes are deleted within an hour as are allowed, whoever leads',
  world: { ...MANY_INSTANCES, ccmFlags: [VPC, '--node-release-percent=10'] },
  tell: async (stage) => {
    const { state } = stage.world.host.model;
    const names = Array.from({ length: GOING }, (_, at) => `many${String(at).padStart(4, '0')}`);
    const left = (): number => names.filter((name) => nodeOf(stage, name).isThere).length;
    const add = (name: string) =>
      state.addInstance({ instanceId: `ins-${name}`, cores: 2, subnetId: 'subnet-nodes000' });
    for (let stays = 0; stays < 2; stays++) await stage.join();
    for (const name of names) {
      add(name);
      await register(stage, name, { spec: { providerID: `qcloud:///100003/ins-${name}` }, isReady: true });
    }
    await stage.until('all are seen', () => names.every((name) => nodeOf(stage, name).isSeen));
    await stage.minutes(3);
    stage.begin();
    for (const name of names) {
      state.removeInstance(`ins-${name}`);
      await setReady(stage, name, 'Unknown');
    }
    await stage.until('some are deleted', () => left() === GOING - AN_HOUR);
    await stage.until('it is told', () => stage.events('DeletingNode').length > 0);
    for (let leader = 0; leader < 3; leader++) {
      stage.killLeader('ccm');
      await stage.minutes(5);
      stage.expect('no other is', left() === GOING - AN_HOUR);
    }
    stage.expect(
      'they say why',
      stage.events('NodeDeletionHeld').some((text) => /--node-release-percent/.test(text)),
    );
    await stage.minutes(60);
    stage.expect('as many more are after an hour', left() === GOING - 2 * AN_HOUR);
    for (const name of names.filter((one) => nodeOf(stage, one).isThere)) {
      add(name);
      await setReady(stage, name, 'True');
    }
  },
};

/** Nodes and instances come, go and stop, cloud and API server fail and answer wrongly, leaders die, by chance. */
export const nodesAndInstances: Story = {
  title: 'no Node is deleted that the cloud has, whatever it answers; in the end those it lacks are deleted',
  world: MANY_INSTANCES,
  tell: async (stage) => {
    const { streams, host, api } = stage.world;
    const { state } = host.model;
    const draw = streams.of('nodes and instances');
    const below = (count: number): number => Math.floor(draw() * count);
    const instances = new Map<string, string>();
    const machines = [await stage.join(), await stage.join()];
    for (const [name, node] of Object.entries(FOREIGN)) await register(stage, name, node);
    await stage.minutes(6);
    stage.begin();
    // Kubelets are silent while the cloud describes nothing, as with a key of another account.
    const whole = stage.cloudFault({ fault: { kind: 'empty' }, actions: ['DescribeInstances'] });
    for (const { name } of machines) await setReady(stage, name, 'Unknown');
    await stage.seconds(30);
    whole();
    await stage.seconds(20);
    for (const { name } of machines) await setReady(stage, name, 'True');
    for (const fault of CLOUD_FAULTS) stage.cloudFault({ fault, actions: ['DescribeInstances'], probability: 0.02 });
    for (const rule of API_FAULTS) stage.apiFault({ ...rule, userAgent: 'ccm-*', chance: 0.02 });
    for (let turn = 0; turn < TURNS; turn++) {
      const name = `place-${below(PLACES)}`;
      const id = instances.get(name) ?? '';
      const instance = state.instances.get(id);
      const deed = draw();
      if (!nodeOf(stage, name).isThere) {
        const made = `ins-life${String(turn).padStart(4, '0')}`;
        instances.set(name, made);
        state.addInstance({ instanceId: made, cores: 2, subnetId: 'subnet-nodes000' });
        await register(stage, name, { spec: { providerID: `qcloud:///100003/${made}` }, isReady: true });
      } else if (deed < 0.35 && instance !== undefined) {
        state.removeInstance(id);
        await setReady(stage, name, 'Unknown');
      } else if (deed < 0.5) await setReady(stage, name, 'Unknown');
      else if (instance !== undefined) {
        instance.state = deed < 0.7 ? 'STOPPED' : 'RUNNING';
        await setReady(stage, name, deed < 0.7 ? 'Unknown' : 'True');
      }
      if (deed > 0.85) stage.killLeader('ccm');
      if (draw() < 0.1) api.cutWatches('ccm-*');
      await stage.seconds([1, 6, 25, 120][below(4)] ?? 0);
    }
    // A server that listed what is not there ends its watches in the end: whoever follows such a list learns of it by another one.
    stage.heal();
    await stage.minutes(1);
    api.cutWatches('ccm-*');
    // ipamd describes instances each three minutes: until then it does not know of one that was stopped last.
    await stage.minutes(4);
  },
};
