import { AbstractClient } from 'tencentcloud-sdk-nodejs/tencentcloud/common/abstract_client.js';
import type { Client } from 'tencentcloud-sdk-nodejs/tencentcloud/services/clb/v20180317/clb_client.js';
import { systemClock } from '../../../../../runtime/clock.ts';
import { CloudHost, type HostSettings } from '../../../../../sim/vpc/api/host.ts';
import { CloudServer } from '../../../../../sim/vpc/api/http-server.ts';
import type { ClbSpec } from '../../../../../sim/vpc/api/model/clb/clb-state.ts';
import type { CloudSpec } from '../../../../../sim/vpc/api/model/state.ts';
import { VirtualClock } from '../../../../support/virtual-clock.ts';

/** The APIs of the SDK's client. */
type Action = Exclude<keyof Client, keyof AbstractClient>;
type GivenTo<A extends Action> = NonNullable<Parameters<Client[A]>[0]>;
/** The SDK's type of a request without parameters is null. */
type RequestOf<A extends Action> = [GivenTo<A>] extends [never] ? object : GivenTo<A>;
type AnswerOf<A extends Action> = Client[A] extends (...args: never[]) => Promise<infer R> ? R : never;

/** The load balancers of a simulated cloud, under test. */
export type TestClb = {
  readonly host: CloudHost;
  /** Calls an API as a client of the SDK does. @throws CallError */
  call<A extends Action>(action: A, request: RequestOf<A>): Promise<AnswerOf<A>>;
  /** Sends whatever it is given. @throws CallError */
  send(action: string, request: object): Promise<Readonly<Record<string, unknown>>>;
  /** Calls an API and waits for its task. @throws Error when the task fails */
  done<A extends Action>(action: A, request: RequestOf<A>): Promise<AnswerOf<A>>;
  /** The code of an error that must come. */
  refusal<A extends Action>(action: A, request: RequestOf<A>): Promise<string>;
  sleep(ms: number): Promise<void>;
  /** Waits for longer than any task takes. */
  taskEnds(): Promise<void>;
};

/** What a run of a test has. */
type Running = { readonly on: TestClb; wait(work: Promise<void>): Promise<void>; close(): Promise<void> };

/** A way to the simulated cloud. */
export type ClbBinding = (clb: ClbSpec, settings?: HostSettings) => Promise<Running>;

/** What an API refused, or that no answer came. */
export class CallError extends Error {
  readonly code: string;

  constructor(code: string, text: string) {
    super(`${code}: ${text}`);
    this.name = 'CallError';
    this.code = code;
  }
}

/** The VPC of these tests. */
export const VPC = 'vpc-0000clb0';
/** Its subnet. */
export const SUBNET = 'subnet-clb00000';
/** Instances of the VPC, by number. */
export const INSTANCES = ['ins-clb00001', 'ins-clb00002'] as const;

const SPEC: CloudSpec = {
  vpcId: VPC,
  subnets: [{ subnetId: SUBNET, zone: 'ap-guangzhou-3', cidr: '10.0.0.0/16' }],
  securityGroupIds: ['sg-clb00001', 'sg-clb00002'],
};

/** By function calls, on a virtual clock. */
export const inProcess: ClbBinding = async (clb, settings = {}) => {
  const clock = new VirtualClock();
  const host = createHost(new CloudHost({ ...SPEC, clb }, clock, { perSecond: () => 1_000, ...settings }));
  const send: TestClb['send'] = async (action, request) => {
    const answer = await host.serve('clb', action, JSON.parse(JSON.stringify(request)));
    if (answer.kind === 'answer') return { ...structuredClone(answer.response) };
    throw answer.kind === 'error' ? new CallError(answer.code, answer.text) : new CallError(answer.kind, 'no answer');
  };
  const sleep = (ms: number): Promise<void> => clock.sleep(ms);
  return { on: testClb(host, send, sleep, 2_000), wait: (work) => clock.run(work), close: async () => undefined };
};

/** By the SDK and HTTP, signed, on the machine's clock; tasks are short. */
export const overHttp: ClbBinding = async (clb, settings = {}) => {
  const options = { taskMs: [10, 30] as const, perSecond: () => 1_000, ...settings };
  const host = createHost(new CloudHost({ ...SPEC, clb }, systemClock, options));
  const server = new CloudServer(host);
  await server.start();
  const { secretId, secretKey } = server.credentials.add('AKIDclb', 'secret-of-clb');
  const client = new AbstractClient(server.endpoint, '2018-03-17', {
    region: 'ap-guangzhou',
    credential: { secretId, secretKey },
    profile: { signMethod: 'TC3-HMAC-SHA256', httpProfile: { reqMethod: 'POST', protocol: 'http://' } },
  });
  const send: TestClb['send'] = async (action, request) => {
    try {
      return await client.request(action, request);
    } catch (error) {
      const code = String((error as { readonly code?: unknown }).code ?? 'reset');
      throw new CallError(code, error instanceof Error ? error.message : String(error));
    }
  };
  const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
  return { on: testClb(host, send, sleep, 40), wait: (work) => work, close: () => server.close() };
};

/** A load balancer of the VPC, ready for use. */
export async function madeBalancer({ call, done }: TestClb, name = 'lb', changes: object = {}): Promise<string> {
  const request = { LoadBalancerType: 'INTERNAL', VpcId: VPC, SubnetId: SUBNET, LoadBalancerName: name, ...changes };
  const { RequestId = '' } = await done('CreateLoadBalancer', request);
  return (await call('DescribeTaskStatus', { TaskId: RequestId })).LoadBalancerIds?.[0] ?? '';
}

/** Listeners of TCP, one a port, ready for use. */
export async function madeListeners(
  { done }: TestClb,
  LoadBalancerId: string,
  Ports: number[],
  changes: object = {},
): Promise<string[]> {
  const { ListenerIds = [] } = await done('CreateListener', { LoadBalancerId, Ports, Protocol: 'TCP', ...changes });
  return ListenerIds;
}

/** Addresses of ENIs that are bound to the first instance. */
export function eniIps({ state }: CloudHost['model'], count: number): readonly string[] {
  const { pool } = state.subnet(SUBNET);
  const primary = state.enisOf(INSTANCES[0]).find(({ isPrimary }) => isPrimary);
  if (primary === undefined) throw new Error('the instance has no ENI');
  return Array.from({ length: count }, () => {
    const ip = pool.take();
    primary.ips.set(ip, { ip, isPrimary: false, state: 'AVAILABLE' });
    return ip;
  });
}

function createHost(host: CloudHost): CloudHost {
  for (const instanceId of INSTANCES) host.model.state.addInstance({ instanceId, cores: 4, subnetId: SUBNET });
  return host;
}

function testClb(host: CloudHost, send: TestClb['send'], sleep: TestClb['sleep'], taskMs: number): TestClb {
  // The answer is what the cloud under test makes of it: a test that reads a field checks it.
  const call = send as TestClb['call'];
  return {
    host,
    call,
    send,
    sleep,
    taskEnds: async () => {
      await sleep(taskMs);
      await host.catchUp();
    },
    done: async (action, request) => {
      const answer = await call(action, request);
      const TaskId = String((answer as { readonly RequestId?: unknown }).RequestId);
      for (let count = 0; count < 100; count++) {
        const { Status, Message } = await call('DescribeTaskStatus', { TaskId });
        if (Status === 0) return answer;
        if (Status === 1) throw new Error(`the task of ${action} failed: ${Message}`);
        await sleep(taskMs / 4);
      }
      throw new Error(`the task of ${action} did not end`);
    },
    refusal: async (action, request) => {
      try {
        await call(action, request);
      } catch (error) {
        if (error instanceof CallError) return error.code;
        throw error;
      }
      throw new Error(`${action} was not refused`);
    },
  };
}
