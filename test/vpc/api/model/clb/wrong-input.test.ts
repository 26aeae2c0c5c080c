import test from 'ava';
import fc from 'fast-check';
import { CLB_ACTIONS } from '../../../../../sim/vpc/api/model/clb/actions.ts';
import { assertLaw } from '../../../../support/law.ts';
import {
  CallError,
  eniIps,
  INSTANCES,
  inProcess,
  madeBalancer,
  madeListeners,
  SUBNET,
  type TestClb,
  VPC,
} from './clb-fixture.ts';

/** What may stand where something else belongs. */
const NONSENSE: readonly unknown[] = [
  '',
  'x',
  -1,
  0.5,
  1e9,
  true,
  [],
  {},
  [null],
  [[]],
  [{}],
  ['x', 'x'],
  { a: 1 },
  [-1],
];

async function prepared(on: TestClb): Promise<Readonly<Record<string, unknown>>> {
  const LoadBalancerId = await madeBalancer(on);
  const [ListenerId = '', second = ''] = await madeListeners(on, LoadBalancerId, [80, 81]);
  const [EniIp = ''] = eniIps(on.host.model, 1);
  const Targets = [{ ListenerId, EniIp, Port: 80 }];
  await on.call('BatchRegisterTargets', { LoadBalancerId, Targets });
  const web = await on.done('CreateListener', { LoadBalancerId, Ports: [8080, 8081], Protocol: 'HTTP' });
  const [SourceListenerId = '', TargetListenerId = ''] = web.ListenerIds ?? [];
  const rule = { Url: '/', Domain: 'www.example.com' };
  const from = await on.done('CreateRule', { LoadBalancerId, ListenerId: SourceListenerId, Rules: [rule] });
  const to = await on.done('CreateRule', { LoadBalancerId, ListenerId: TargetListenerId, Rules: [rule] });
  const [SourceLocationId = ''] = from.LocationIds ?? [];
  const [TargetLocationId = ''] = to.LocationIds ?? [];
  // A value that is good for the parameter of this name, in whatever request.
  return {
    ...{ LoadBalancerId, LoadBalancerIds: [LoadBalancerId], ListenerId, ListenerIds: [ListenerId, second] },
    ...{ LoadBalancerType: 'INTERNAL', VpcId: VPC, SubnetId: SUBNET, Ports: [90], Protocol: 'TCP' },
    Targets: [{ EniIp, Port: 80 }],
    ModifyList: [{ ListenerId, Targets: [{ EniIp, Port: 80 }], Weight: 3 }],
    Backends: [{ VpcId: VPC, PrivateIp: EniIp }],
    SecurityGroups: ['sg-clb00001'],
    CertIds: ['aaaaaaaa'],
    HealthCheck: { HealthSwitch: 0 },
    ...{ SourceListenerId, TargetListenerId, RewriteInfos: [{ SourceLocationId, TargetLocationId }] },
    ...{ Rules: [rule], Domain: rule.Domain, LocationId: SourceLocationId },
  };
}

/** What must hold whatever was asked for. */
function violations({ host }: TestClb): readonly string[] {
  return [...host.model.state.clb.balancers().values()].flatMap(({ loadBalancerId, listeners, isOperating }) => {
    const all = [...listeners.values()];
    const ports = all.map(
      ({ protocol, port }) => `${protocol === 'UDP' || protocol === 'QUIC' ? 'UDP' : 'TCP'}/${port}`,
    );
    const rules = all.flatMap(({ layer7 }) => [...(layer7?.rules.values() ?? [])]);
    const targeted = new Set(rules.flatMap(({ rewriteTo }) => rewriteTo?.ruleId ?? []));
    return [
      ...rules.flatMap(({ ruleId, rewriteTo }) =>
        rewriteTo !== undefined && targeted.has(ruleId) ? [`${ruleId} is source and target of redirects`] : [],
      ),
      ...(isOperating ? [`${loadBalancerId} is operating forever`] : []),
      ...(new Set(ports).size < ports.length ? [`${loadBalancerId} has a port twice: ${ports.join()}`] : []),
      ...(all.length > host.model.state.clb.limits.listeners ? [`${loadBalancerId} has too many listeners`] : []),
      ...all.flatMap(({ listenerId, targets }) =>
        [...targets].flatMap(([key, { ip, port, weight }]) =>
          key === `${ip}:${port}` && weight >= 0 && weight <= 100 ? [] : [`${listenerId} has ${key} with ${weight}`],
        ),
      ),
    ];
  });
}

/** Runs a test in process. */
async function withClb(body: (on: TestClb) => Promise<void>): Promise<void> {
  const { on, wait } = await inProcess({});
  await wait(body(on));
}

for (const action of Object.keys(CLB_ACTIONS)) {
  test(`${action}: nonsense in any parameter is refused by a code, and never breaks the cloud`, async (t) => {
    await withClb(async (on) => {
      const good = await prepared(on);
      const { required = [], optional = [] } = CLB_ACTIONS[action] ?? {};
      const base = Object.fromEntries(required.map((name) => [name, good[name]]));
      for (const name of required) {
        const { [name]: _, ...less } = base;
        await t.throwsAsync(on.send(action, less), { instanceOf: CallError, message: /^MissingParameter/ }, name);
      }
      const unknown = { ...base, Nonsense: 1 };
      await t.throwsAsync(on.send(action, unknown), { instanceOf: CallError, message: /^UnknownParameter/ });
      for (const name of [...required, ...optional]) {
        for (const value of NONSENSE) {
          const what = `${name} = ${JSON.stringify(value)}`;
          try {
            await on.send(action, { ...base, [name]: value });
            await on.taskEnds();
          } catch (error) {
            t.true(error instanceof CallError, `${what}: ${String(error)}`);
          }
          t.deepEqual(violations(on), [], what);
        }
      }
    });
  });
}

const port = fc.constantFrom(80, 81, 82);
const at = fc.nat(3);
/** One request of somebody who knows the parameters, but not the state. */
const request = fc.oneof(
  fc.record({
    kind: fc.constant('create' as const),
    ports: fc.array(port, { minLength: 1, maxLength: 3 }),
    isUdp: fc.boolean(),
  }),
  fc.record({ kind: fc.constant('delete' as const), listener: at }),
  fc.record({ kind: fc.constant('delete-all' as const) }),
  fc.record({ kind: fc.constantFrom('register' as const, 'deregister' as const), listener: at, target: at, port }),
  fc.record({
    kind: fc.constantFrom('batch-register' as const, 'batch-deregister' as const),
    listener: at,
    target: at,
    port,
  }),
  fc.record({
    kind: fc.constant('weigh' as const),
    listener: at,
    target: at,
    port,
    weight: fc.integer({ min: -1, max: 101 }),
  }),
  fc.record({ kind: fc.constant('wait' as const) }),
);
type Request = typeof request extends fc.Arbitrary<infer T> ? T : never;

test('law: whatever is asked for, in whatever order, ports and targets stay unique and the cloud takes changes', async (t) => {
  await assertLaw(
    t,
    (inner) =>
      fc.asyncProperty(fc.array(request, { maxLength: 25 }), async (requests) => {
        await withClb(async (on) => {
          const LoadBalancerId = await madeBalancer(on);
          const ips = eniIps(on.host.model, 3);
          for (const one of requests) await ask(on, LoadBalancerId, ips, one);
          await on.taskEnds();
          inner.deepEqual(violations(on), []);
          const { Listeners = [] } = await on.call('DescribeListeners', { LoadBalancerId });
          const { Listeners: bound = [] } = await on.call('DescribeTargets', { LoadBalancerId });
          inner.deepEqual(
            Listeners.map(({ ListenerId }) => ListenerId),
            bound.map(({ ListenerId }) => ListenerId),
          );
          await on.done('DeleteLoadBalancerListeners', { LoadBalancerId });
        });
      }),
    { numRuns: 20 },
  );
});

async function ask(on: TestClb, LoadBalancerId: string, ips: readonly string[], one: Request): Promise<void> {
  if (one.kind === 'wait') return on.taskEnds();
  const known = [...on.host.model.state.clb.balancer(LoadBalancerId).listeners.keys()];
  const ListenerId = ('listener' in one ? known[one.listener] : undefined) ?? 'lbl-none';
  const backend =
    'target' in one && ips[one.target] !== undefined ? { EniIp: ips[one.target] } : { InstanceId: INSTANCES[0] };
  const target = 'target' in one ? { ...backend, Port: one.port } : {};
  const requests: Readonly<Record<Exclude<Request['kind'], 'wait'>, readonly [string, object]>> = {
    create: [
      'CreateListener',
      { Ports: 'ports' in one ? one.ports : [], Protocol: 'isUdp' in one && one.isUdp ? 'UDP' : 'TCP' },
    ],
    delete: ['DeleteListener', { ListenerId }],
    'delete-all': ['DeleteLoadBalancerListeners', {}],
    register: ['RegisterTargets', { ListenerId, Targets: [target] }],
    deregister: ['DeregisterTargets', { ListenerId, Targets: [target] }],
    'batch-register': ['BatchRegisterTargets', { Targets: [{ ListenerId, ...target }] }],
    'batch-deregister': ['BatchDeregisterTargets', { Targets: [{ ListenerId, ...target }] }],
    weigh: ['ModifyTargetWeight', { ListenerId, Targets: [target], Weight: 'weight' in one ? one.weight : 0 }],
  };
  const [action, params] = requests[one.kind];
  try {
    await on.send(action, { LoadBalancerId, ...params });
  } catch (error) {
    if (!(error instanceof CallError)) throw error;
  }
}
