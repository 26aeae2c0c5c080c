import type { CallContext, Cloud } from '../../cloud/cloud.ts';
import { createRotatingSource } from '../../cloud/tencent/credentials/rotating.ts';
import { openSdkApi } from '../../cloud/tencent/sdk-api.ts';
import { createTencentCloud, type TencentCloud } from '../../cloud/tencent/tencent-cloud.ts';
import { systemClock } from '../../runtime/clock.ts';
import { seededRandom } from '../../sim/support/seeded-random.ts';
import { CloudHost, type HostSettings } from '../../sim/vpc/api/host.ts';
import { CloudServer } from '../../sim/vpc/api/http-server.ts';
import { createInProcessApi } from '../../sim/vpc/api/in-process.ts';
import type { CloudSpec } from '../../sim/vpc/api/model/state.ts';
import { VirtualClock } from '../support/virtual-clock.ts';

/** A VPC with two subnets, the second with five usable addresses, and instances of 1, 2 and 8 cores. */
export const SPEC: CloudSpec = {
  vpcId: 'vpc-0000test',
  subnets: [
    { subnetId: 'subnet-large000', zone: 'ap-guangzhou-3', cidr: '10.0.0.0/16', cidrV6: 'fd00:8::/64' },
    { subnetId: 'subnet-small000', zone: 'ap-guangzhou-3', cidr: '10.1.0.0/29' },
    { subnetId: 'subnet-zone4000', zone: 'ap-guangzhou-4', cidr: '10.2.0.0/24' },
  ],
  vpcEnis: 50,
  eips: 3,
};

/** A cloud under test, and the simulated cloud behind it. */
export type TestCloud = {
  readonly cloud: TencentCloud;
  readonly host: CloudHost;
  /** Waits for a promise on whatever clock this cloud has. */
  readonly wait: <T>(work: Promise<T>) => Promise<T>;
  readonly close: () => Promise<void>;
};

/** A way to stand between the port and the simulated cloud. */
export type Binding = (settings?: HostSettings, spec?: Partial<CloudSpec>) => Promise<TestCloud>;

/** The adapter on function calls and a virtual clock. */
export const inProcess: Binding = async (settings = {}, spec = {}) => {
  const clock = new VirtualClock();
  const host = createHost(new CloudHost({ ...SPEC, ...spec }, clock, settings));
  const cloud = createTencentCloud({ api: createInProcessApi(host), clock, random: seededRandom(7) });
  return { cloud, host, wait: (work) => clock.run(work), close: async () => undefined };
};

/** The adapter on the real SDK, HTTP and the machine's clock; tasks are short, so that the suite is. */
export const overHttp: Binding = async (settings = {}, spec = {}) => {
  const host = createHost(new CloudHost({ ...SPEC, ...spec }, systemClock, { taskMs: [5, 30], ...settings }));
  const server = new CloudServer(host);
  await server.start();
  const key = server.credentials.add('AKIDtest', 'test-secret');
  const at = server.endpoint;
  const hosts = { vpc: at, cvm: at, clb: at, tke: at, sts: at, ssl: at };
  const credentials = createRotatingSource(systemClock, async () => ({ credential: key }));
  const api = openSdkApi({ region: 'ap-guangzhou', hosts, protocol: 'http' }, credentials);
  const cloud = createTencentCloud({ api, clock: systemClock, random: seededRandom(7) });
  return { cloud, host, wait: (work) => work, close: () => server.close() };
};

function createHost(host: CloudHost): CloudHost {
  const { state } = host.model;
  state.addInstance({ instanceId: 'ins-cores001', cores: 1, subnetId: 'subnet-large000' });
  state.addInstance({ instanceId: 'ins-cores002', cores: 2, subnetId: 'subnet-large000' });
  state.addInstance({ instanceId: 'ins-cores008', cores: 8, subnetId: 'subnet-large000' });
  state.addInstance({ instanceId: 'ins-zone4001', cores: 2, subnetId: 'subnet-zone4000' });
  return host;
}

/** A context of a call for a Pod, with a long time to spend. */
export function contextOf(change: Partial<CallContext> = {}): CallContext {
  return { priority: 'pod', owner: 'node-a', signal: new AbortController().signal, ...change };
}

/** Creates an ENI in the large subnet and waits for it. */
export async function createdEni(
  cloud: Cloud,
  name: string,
  ipCount = 0,
  subnetId = 'subnet-large000',
): Promise<string> {
  const { eni, task } = await cloud.enis.create(
    { vpcId: SPEC.vpcId, subnetId, name, ipCount, tags: { cluster: 'cls-test' } },
    contextOf(),
  );
  await cloud.tasks.settle(task, contextOf());
  return eni.eniId;
}

/** Creates an ENI, attaches it, and waits for both. */
export async function attachedEni(cloud: Cloud, name: string, instanceId: string, ipCount = 0): Promise<string> {
  const eniId = await createdEni(cloud, name, ipCount);
  await cloud.tasks.settle(await cloud.enis.attach(eniId, instanceId, contextOf()), contextOf());
  return eniId;
}
