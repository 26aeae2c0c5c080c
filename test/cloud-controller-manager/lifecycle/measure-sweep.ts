import { NODES } from '../../../kube/resource-types.ts';
import { NodeWorld } from '../node-world.ts';

/** What sweeps over Nodes cost. */
type SweepReport = {
  /** Requests of one sweep while all Nodes are ready. */
  readonly readyCalls: number;
  /** Most requests of a sweep while none is ready, and how many sweeps there were. */
  readonly calls: number;
  readonly sweeps: number;
};

const PERIOD_MS = 60_000;
const SWEEPS = 4;

/** Counts the requests of the lifecycle controller over `count` Nodes, first all ready, then none. */
export async function measureSweep(count: number): Promise<SweepReport> {
  const flags = ['--controllers=cloud-node-lifecycle-controller', '--node-monitor-period=1m'];
  const world = await NodeWorld.start(...flags);
  const { host, clock, admin } = world.scene;
  const names = Array.from({ length: count }, (_, index) => `ins-n${String(index).padStart(7, '0')}`);
  for (const name of names) {
    host.model.state.addInstance({ instanceId: name, cores: 4, subnetId: 'subnet-node0001' });
    const spec = { providerID: `qcloud:///100003/${name}` };
    const status = { conditions: [{ type: 'Ready', status: 'True', reason: 'Kubelet' }] };
    void admin.create(NODES, { apiVersion: 'v1', kind: 'Node', metadata: { name }, spec, status });
  }
  await clock.advance(PERIOD_MS);
  host.forget();
  await world.advance(SWEEPS * PERIOD_MS);
  const readyCalls = (host.counts()['DescribeInstances'] ?? 0) / SWEEPS;
  const body = { status: { conditions: [{ type: 'Ready', status: 'Unknown', reason: 'Kubelet' }] } };
  for (const name of names) void admin.patch(NODES, { name }, { kind: 'strategic', body, subresource: 'status' });
  await world.advance(PERIOD_MS);
  host.forget();
  await world.advance(SWEEPS * PERIOD_MS);
  const bySweep = Map.groupBy(host.seen, ({ atMs }) => Math.floor(atMs / PERIOD_MS));
  const calls = Math.max(...[...bySweep.values()].map((seen) => seen.length));
  await world.stop();
  return { readyCalls, calls, sweeps: bySweep.size };
}
