import { BACKEND_READY_GATE } from '../../../crd/names.ts';
import type { Fault } from '../../../sim/vpc/api/faults.ts';
import { type Change, ServiceStage } from '../service-stage.ts';
import type { Story } from '../story.ts';

/** A cluster whose load balancers are made by the cloud controller manager. */
export const WORLD = { ccmFlags: ['--load-balancers=clb', '--ingress=clb', '--vpc-id=vpc-0000test'] } as const;
/** Annotation of Services whose Pods are targets. */
export const DIRECT = 'service.cloud.tencent.com/direct-access';
/** Label of Nodes that are no targets. */
export const CLOSED_NODE = 'node.kubernetes.io/exclude-from-external-load-balancers';
/** Annotation of Services whose load balancer is another's. */
const EXISTED = 'service.kubernetes.io/tke-existed-lbid';
const ALLOWS_CHANGE = { 'tke.cloud.tencent.com/allow-address-change': 'true' };
/** Annotations of Services whose load balancer is of the VPC alone. */
export const INTERNAL = {
  ...ALLOWS_CHANGE,
  'service.kubernetes.io/qcloud-loadbalancer-internal-subnetid': 'subnet-nodes000',
};

/** A Service gets its load balancer, another port, one of another kind, and goes. One of others stays. */
export const serviceLife: Story = {
  title: 'a Service has one load balancer, and none is left',
  world: WORLD,
  tell: async (stage) => {
    const services = new ServiceStage(stage);
    await stage.node();
    const bought = await services.buy();
    stage.begin();
    await services.create('web');
    await stage.until('it is reached', () => services.address('Service', 'web') !== '' && / 10$/.test(services.ways));
    await services.change('Service', 'web', { spec: { ports: [{ port: 81, nodePort: 30_081 }] } });
    await stage.until('the other port', () => /^TCP\/81 [\d.]+:30081 10$/.test(services.ways));
    await services.change('Service', 'web', { annotations: INTERNAL });
    await stage.until('an internal one', () => services.address('Service', 'web').startsWith('10.0.0.'));
    await services.end('Service', 'web');
    await services.create('inner', { annotations: INTERNAL });
    await stage.until('it is reached', () => services.address('Service', 'inner') !== '');
    await services.change('Service', 'inner', { spec: { type: 'ClusterIP' } });
    await stage.until('it is no Service of ours any more', () => services.balancers.length === 1);
    stage.expect(
      'that of others stays as it was',
      services.balancers.map(({ loadBalancerId }) => loadBalancerId).join() === bought,
    );
  },
};

/** A Service that ends. Not for a driver: a leader that dies after the deletion says nothing of it. */
export const toldDeletion: Story = {
  title: 'the end of a load balancer is an event of its Service',
  world: WORLD,
  tell: async (stage) => {
    const services = new ServiceStage(stage);
    await stage.node();
    stage.begin();
    await services.create('web');
    await stage.until('it is reached', () => services.address('Service', 'web') !== '');
    await services.end('Service', 'web');
    stage.expect('it is told', stage.events('DeletedLoadBalancer').length > 0);
  },
};

/** A Service whose Pods are targets: they come, one is unwell, one goes, it turns to Nodes and back. */
export const podTargets: Story = {
  title: 'targets are the Pods that are ready',
  world: WORLD,
  tell: async (stage) => {
    const services = new ServiceStage(stage);
    const [first, second] = [await stage.node(), await stage.node()];
    const web = { labels: { app: 'web' }, gates: [BACKEND_READY_GATE] };
    const areServing = (port: number, ...pods: readonly string[]): boolean =>
      services.serving ===
      pods
        .map((pod) => `TCP/${port} ${stage.ipOf(pod)}:8080`)
        .sort()
        .join();
    stage.begin();
    await services.create('web', { annotations: { [DIRECT]: 'true' } });
    const [a = ''] = await stage.pods(first, 1, web);
    await stage.until('the first', () => areServing(80, a) && services.isReady(a));
    const seeServing = (): (() => void) => stage.always('a target serves', () => services.serving !== '');
    const changePort = seeServing();
    const [b = ''] = await stage.pods(second, 1, web);
    await stage.until('both', () => areServing(80, a, b));
    await services.setWell(a, false);
    await stage.until('one alone', () => areServing(80, b));
    await services.setWell(a, true);
    await stage.until('both again', () => areServing(80, a, b));
    await stage.endPods(a);
    await stage.until('the second', () => areServing(80, b) && services.isReady(b));
    changePort();
    await services.change('Service', 'web', { spec: { ports: [{ port: 81, targetPort: 8_080, nodePort: 30_081 }] } });
    await stage.until('the other port', () => areServing(81, b));
    const end = seeServing();
    await services.change('Service', 'web', { annotations: { [DIRECT]: 'false' } });
    await stage.until('Nodes', () => /^TCP\/81 [\d.]+:30081,TCP\/81 [\d.]+:30081$/.test(services.serving));
    await services.change('Service', 'web', { annotations: { [DIRECT]: 'true' } });
    await stage.until('Pods again', () => areServing(81, b));
    end();
    await services.end('Service', 'web');
    await stage.until('no list has an address', () => services.published.length === 0);
  },
};

/** A Service selects other Pods right after one was registered, while answers are as of before that; then the same when another leader reads them. */
export const staleTargets: Story = {
  title: 'a target stays published though an answer of before lacks it',
  world: WORLD,
  tell: async (stage) => {
    const services = new ServiceStage(stage);
    const node = await stage.node();
    await services.create('web', { annotations: { [DIRECT]: 'true' } });
    await stage.pods(node, 1, { labels: { app: 'web' } });
    await stage.until('it is served', () => services.serving !== '');
    // In its first minute a leader takes nothing out.
    await stage.minutes(2);
    stage.begin();
    for (const diesBetween of [false, true]) {
      const [next = ''] = await stage.pods(node, 1, { labels: { app: 'web' } });
      await stage.until('it is a target', () => services.ways.includes(`${stage.ipOf(next)}:`));
      await stage.seconds(1);
      const heal = stage.cloudFault({ fault: { kind: 'stale', ms: 30_000 }, actions: ['DescribeTargets'] });
      if (diesBetween) stage.killLeader('ccm');
      await services.change('Service', 'web', { spec: { selector: { app: 'other' } } });
      await stage.seconds(25);
      heal();
      await services.change('Service', 'web', { spec: { selector: { app: 'web' } } });
      await stage.until('it is served', () => services.serving.includes(`${stage.ipOf(next)}:`));
    }
  },
};

/** A Service has source ranges, other ones and another port, none, and some again. */
export const sourceRanges: Story = {
  title: 'a Service with source ranges is never open, and no security group is left',
  world: WORLD,
  tell: async (stage) => {
    const services = new ServiceStage(stage);
    await stage.node();
    const limited = (port: number, ...loadBalancerSourceRanges: readonly string[]) => ({
      spec: { ports: [{ port, nodePort: 30_000 + port }], loadBalancerSourceRanges },
    });
    stage.begin();
    await services.create('web', limited(80, '10.0.0.0/8'));
    await stage.until('closed', () => services.admitted === 'TCP/80 for 10.0.0.0/8 to 80');
    await services.change('Service', 'web', limited(81, '192.0.2.0/24'));
    await stage.until('closed otherwise', () => services.admitted === 'TCP/81 for 192.0.2.0/24 to 81');
    await services.change('Service', 'web', limited(81));
    await stage.until('open', () => services.admitted === 'TCP/81 for everyone');
    await services.change('Service', 'web', limited(81, '10.0.0.0/8'));
    await stage.until('closed again', () => services.admitted === 'TCP/81 for 10.0.0.0/8 to 81');
    await services.end('Service', 'web');
    // They are taken away while a group is made for them, and by another leader than the one that made it.
    const sent = stage.sent('CreateSecurityGroup');
    await services.create('brief', limited(82, '10.0.0.0/8'));
    await stage.until('a group is sent for', () => stage.sent('CreateSecurityGroup') > sent);
    stage.killLeader('ccm');
    await services.change('Service', 'brief', limited(82));
    await stage.until('open', () => services.admitted === 'TCP/82 for everyone');
  },
};

/** What is in force is on record; then a Node is a backend no more for a moment. */
export const settledService: Story = {
  title: 'what is on record as in force is looked at again after each change',
  world: WORLD,
  tell: async (stage) => {
    const services = new ServiceStage(stage);
    const [, second] = [await stage.node(), await stage.node()];
    await services.create('web');
    await stage.until('it is on record', () => services.isSettled('web'), 3_600_000);
    stage.begin();
    await services.changeNode(second, { metadata: { labels: { [CLOSED_NODE]: '' } } });
    await stage.seconds(4);
    await services.changeNode(second, { metadata: { labels: { [CLOSED_NODE]: null } } });
    await stage.seconds(40);
    stage.expect('both Nodes are targets', /^TCP\/80( [\d.]+:\d+ 10){2}$/.test(services.ways));
  },
};

/** Services on load balancers of others go, or move, while a listener for them is still to be made; so does one whose own load balancer is kept. One Service stays all the time. */
export const lateListeners: Story = {
  title: 'no listener is left on a load balancer that stays, however late it is made',
  world: WORLD,
  tell: async (stage) => {
    const services = new ServiceStage(stage);
    await stage.node();
    const [bought, other] = [await services.buy(), await services.buy('other')];
    const isReached = (name: string) => () => services.address('Service', name) !== '';
    const createLate = async (name: string, annotations: Change['annotations'] & object): Promise<void> => {
      stage.stray('CreateListener', 45, 'ccm');
      await services.create(name, { annotations });
    };
    const end = async (name: string): Promise<void> => {
      await services.end('Service', name);
      await stage.seconds(60);
    };
    // Another one lives on it all the time.
    await services.create('stays', {
      annotations: { [EXISTED]: bought },
      spec: { ports: [{ port: 81, nodePort: 30_081 }] },
    });
    await stage.until('stays is reached', isReached('stays'));
    stage.begin();
    await createLate('web', { [EXISTED]: bought });
    await stage.until('web is reached', isReached('web'));
    await end('web');
    // The next leader does not know what the one before it sent.
    const sent = stage.sent('CreateListener');
    await createLate('inherited', { [EXISTED]: bought });
    await stage.until('a listener is sent for', () => stage.sent('CreateListener') > sent);
    stage.killLeader('ccm');
    await stage.until('inherited is reached', isReached('inherited'));
    await end('inherited');
    await createLate('moved', { [EXISTED]: bought });
    await stage.until('moved is reached', isReached('moved'));
    await services.change('Service', 'moved', { annotations: { ...ALLOWS_CHANGE, [EXISTED]: other } });
    await stage.until('it is on the other one', () => services.waysOf(other) !== '');
    await stage.seconds(60);
    await end('moved');
    await createLate('kept', { 'service.cloud.tencent.com/loadbalance-retain': 'true' });
    await stage.until('kept is reached', isReached('kept'));
    await end('kept');
    // The cloud accepts this one, and is long about it.
    const accepted = stage.sent('CreateListener');
    stage.cloudFault({ fault: { kind: 'slow-task', ms: 200_000 }, actions: ['CreateListener'], times: 1 });
    await services.create('slow', { annotations: { [EXISTED]: bought } });
    await stage.until('a listener is accepted', () => stage.sent('CreateListener') > accepted);
    await stage.seconds(5);
    await services.end('Service', 'slow');
    await stage.seconds(200);
    await services.change('Service', 'stays', { spec: { ports: [{ port: 82, nodePort: 30_082 }] } });
  },
};

const FAULTS: readonly Fault[] = [
  { kind: 'reset', after: true },
  { kind: 'reset' },
  { kind: 'hang', after: true },
  { kind: 'error', code: 'InternalError', after: true },
  { kind: 'task', fate: 'fail' },
  { kind: 'task', fate: 'vanish' },
  { kind: 'slow-task', ms: 150_000 },
];

/** Each Service gets its load balancer whatever happens to the call that makes it; one goes while it is made. */
export const makingGoesWrong: Story = {
  title: 'a Service has one load balancer whatever happens to the call that makes it',
  world: WORLD,
  tell: async (stage) => {
    const services = new ServiceStage(stage);
    await stage.node();
    stage.begin();
    for (const [at, fault] of FAULTS.entries()) {
      const heal = stage.cloudFault({ fault, actions: ['CreateLoadBalancer'], times: 1 });
      await services.create(`web-${at}`);
      await stage.until('it is reached', () => services.address('Service', `web-${at}`) !== '', 1_200_000);
      heal();
    }
    // From now on nothing is listed before a minute is over: the next leader does not see what the one before it made.
    stage.cloudFault({ fault: { kind: 'stale', ms: 55_000 }, actions: ['DescribeLoadBalancers'] });
    const sent = stage.sent('CreateLoadBalancer');
    await services.create('inherited');
    await stage.until('it is sent for', () => stage.sent('CreateLoadBalancer') > sent);
    stage.killLeader('ccm');
    await stage.until('it is reached', () => services.address('Service', 'inherited') !== '', 1_200_000);
    stage.cloudFault({ fault: { kind: 'reset', after: true }, actions: ['CreateLoadBalancer'], times: 9 });
    await services.create('short');
    await stage.seconds(3);
    await services.end('Service', 'short');
  },
};
