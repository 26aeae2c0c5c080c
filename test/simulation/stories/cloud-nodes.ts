import { NODES } from '../../../kube/resource-types.ts';
import { recordOf, recordsOf } from '../../../runtime/json.ts';
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
  { spec = {}, ...metadata }: { spec?: object; labels?: object; annotations?: object },
) {
  const status = { addresses: [{ type: 'Hostname', address: name }], conditions: [{ type: 'Ready', status: 'False' }] };
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
  const body = { status: { conditions: [{ type: 'Ready', status, reason: 'Kubelet' }] } };
  await stage.people(stage.world.admin.patch(NODES, { name }, { kind: 'strategic', body, subresource: 'status' }));
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

/** Routes to the podCIDRs of Nodes, kept by the cloud controller manager in one kind of table. */
function routesIn(kind: string, flags: readonly string[], addTables: (stage: Stage) => void): Story {
  return {
    title: `routes in ${kind} are those of the Nodes`,
    world: { ccmFlags: [VPC, `--routes=${kind}`, '--cluster-cidr=172.16.0.0/16', ...flags] },
    tell: async (stage) => {
      addTables(stage);
      const [, moves, goes] = [
        await stage.join({ podCIDR: '172.16.1.0/24' }),
        await stage.join({ podCIDR: '172.16.2.0/24' }),
        await stage.join({ podCIDR: '172.16.3.0/24' }),
      ];
      const isRouted = (name: string): boolean => {
        const node = stage.world.objects('nodes').find(({ metadata }) => metadata.name === name);
        const all = recordsOf(recordOf(node?.['status'])['conditions']);
        return all.some(({ type, status }) => type === 'NetworkUnavailable' && status === 'False');
      };
      await stage.until('all have routes', () => stage.world.machines.every(({ name }) => isRouted(name)));
      stage.begin();
      await stage.leave(moves);
      const moved = await stage.join({ podCIDR: '172.16.2.0/24' });
      await stage.leave(goes);
      const comes = await stage.join({ podCIDR: '172.16.4.0/24' });
      await stage.until('they have routes', () => [moved, comes].every(({ name }) => isRouted(name)));
    },
  };
}

const TABLES = ['rtb-test0001', 'rtb-test0002'];

export const globalRoutes = routesIn('global', [], () => {});
export const tableRoutes = routesIn('table', [`--route-tables=${TABLES.join()}`], ({ world }) => {
  for (const table of TABLES) world.host.model.state.routeTables.addTable(table, 'vpc-0000test');
});
export const clusterRoutes = routesIn('cluster', [], ({ world }) => {
  world.host.model.state.clusterRouteTables.addTable('cls-sim00001', 'vpc-0000test');
});
