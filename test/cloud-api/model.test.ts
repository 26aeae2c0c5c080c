import test from 'ava';
import fc from 'fast-check';
import { ApiError } from '../../sim/vpc/api/model/api-error.ts';
import type { TaskPlan } from '../../sim/vpc/api/model/call.ts';
import { CloudModel } from '../../sim/vpc/api/model/cloud-model.ts';
import { SPEC } from '../cloud/cloud-fixture.ts';
import { assertLaw } from '../support/law.ts';

const PLAN: TaskPlan = { fate: 'succeed', lastsMs: 100 };

class World {
  readonly model = new CloudModel(SPEC);
  nowMs = 1_000;
  #requests = 0;

  constructor() {
    this.model.advance(this.nowMs);
    this.model.state.addInstance({ instanceId: 'ins-a', cores: 2, subnetId: 'subnet-large000' });
    this.model.state.addInstance({ instanceId: 'ins-b', cores: 1, subnetId: 'subnet-large000' });
  }

  call(action: string, params: Readonly<Record<string, unknown>>, plan: TaskPlan = PLAN): Record<string, unknown> {
    this.#requests += 1;
    const product = action === 'DescribeInstances' ? 'cvm' : 'vpc';
    const requestId = `req-${this.#requests}`;
    const { nowMs } = this;
    return { ...this.model.handle({ product, action, params, requestId, nowMs, planTask: () => plan }) };
  }

  /** The code that a call is refused with; OK when it is not. */
  codeOf(action: string, params: Readonly<Record<string, unknown>>, plan: TaskPlan = PLAN): string {
    try {
      this.call(action, params, plan);
      return 'OK';
    } catch (error) {
      if (error instanceof ApiError) return error.code;
      throw error;
    }
  }
}

const refused = test.macro((t, action: string, params: Readonly<Record<string, unknown>>, code: string) => {
  t.is(new World().codeOf(action, params), code);
});
const filter = (Name: string, count = 1) => ({
  Filters: [{ Name, Values: Array.from({ length: count }, (_, n) => `v${n}`) }],
});
const DESCRIBE = 'DescribeNetworkInterfaces';
const CREATE = { VpcId: SPEC.vpcId, SubnetId: 'subnet-large000', NetworkInterfaceName: 'n' };

test('model: an unknown filter name', refused, DESCRIBE, filter('instance-id'), 'InvalidParameter.FilterInvalidKey');
test('model: a known filter name', refused, DESCRIBE, filter('attachment.instance-id'), 'OK');
test('model: a filter of the CVM', refused, 'DescribeInstances', filter('attachment.instance-id'), 'InvalidFilter');
test(
  'model: too many values for the CVM',
  refused,
  'DescribeInstances',
  filter('instance-id', 6),
  'InvalidParameterValue.LimitExceeded',
);
test(
  'model: ids and filters',
  refused,
  DESCRIBE,
  { NetworkInterfaceIds: ['eni-1'], ...filter('vpc-id') },
  'InvalidParameter.Coexist',
);
test('model: too large a page', refused, DESCRIBE, { Limit: 101 }, 'InvalidParameterValue.Range');
test('model: numbers where texts are wanted', refused, 'DescribeSubnets', { Limit: 10 }, 'InvalidParameter');
test('model: texts where numbers are wanted', refused, DESCRIBE, { Limit: '10' }, 'InvalidParameter');
test('model: a parameter that does not exist', refused, DESCRIBE, { MaxResults: 5 }, 'UnknownParameter');
test(
  'model: a parameter that must be there',
  refused,
  'CreateNetworkInterface',
  { VpcId: SPEC.vpcId },
  'MissingParameter',
);
test(
  'model: too long a name',
  refused,
  'CreateNetworkInterface',
  { ...CREATE, NetworkInterfaceName: 'n'.repeat(61) },
  'InvalidParameterValue.TooLong',
);
test('model: an unknown API', refused, 'MakeCoffee', {}, 'InvalidAction');
test(
  'model: a malformed id',
  refused,
  'DeleteNetworkInterface',
  { NetworkInterfaceId: 'eni-UPPER' },
  'InvalidParameterValue.Malformed',
);
test('model: a task that nobody began', refused, 'DescribeVpcTaskResult', { TaskId: 'x' }, 'ResourceNotFound');
test('model: an EIP task id that is a text', refused, 'DescribeTaskResult', { TaskId: '1' }, 'InvalidParameter');

test('model: an instance holds as many ENIs as its size allows, primary included', (t) => {
  const world = new World();
  const eniIds = [1, 2].map((number) => {
    const { NetworkInterface } = world.call('CreateNetworkInterface', {
      ...CREATE,
      NetworkInterfaceName: `n${number}`,
    });
    return String(Reflect.get(Object(NetworkInterface), 'NetworkInterfaceId'));
  });
  const attach = (eniId: string | undefined) =>
    world.codeOf('AttachNetworkInterface', { NetworkInterfaceId: eniId, InstanceId: 'ins-b' });
  t.is(attach(eniIds[0]), 'UnsupportedOperation.InvalidState');
  world.nowMs += 100;
  t.is(attach(eniIds[0]), 'OK');
  t.is(attach(eniIds[1]), 'LimitExceeded');
});

type Step = {
  readonly action: string;
  readonly pick: number;
  readonly other: number;
  readonly fate: TaskPlan['fate'];
  readonly waitMs: number;
};
const arbStep: fc.Arbitrary<Step> = fc.record({
  action: fc.constantFrom('create', 'attach', 'detach', 'delete', 'assign', 'unassign', 'migrate', 'terminate'),
  pick: fc.nat(5),
  other: fc.nat(5),
  fate: fc.constantFrom('succeed', 'succeed', 'succeed', 'fail', 'vanish'),
  waitMs: fc.constantFrom(0, 0, 50, 200),
});

/** Does one step of a random history; what the model refuses is no step. */
function take(world: World, step: Step): void {
  const { state } = world.model;
  const enis = [...state.enis.values()].filter((eni) => !eni.isPrimary);
  const eni = enis[step.pick % Math.max(1, enis.length)];
  const plan = { fate: step.fate, lastsMs: 100 };
  const subnet = step.other % 2 === 0 ? 'subnet-small000' : 'subnet-large000';
  const NetworkInterfaceId = eni?.eniId ?? 'eni-00000000';
  const InstanceId = step.other % 2 === 0 ? 'ins-a' : 'ins-b';
  const second = [...(eni?.ips.keys() ?? [])][1] ?? '10.0.0.77';
  const calls: Readonly<Record<string, () => unknown>> = {
    create: () =>
      world.codeOf(
        'CreateNetworkInterface',
        { ...CREATE, SubnetId: subnet, SecondaryPrivateIpAddressCount: step.other % 3 },
        plan,
      ),
    attach: () => world.codeOf('AttachNetworkInterface', { NetworkInterfaceId, InstanceId }, plan),
    detach: () => world.codeOf('DetachNetworkInterface', { NetworkInterfaceId, InstanceId }, plan),
    delete: () => world.codeOf('DeleteNetworkInterface', { NetworkInterfaceId }, plan),
    assign: () =>
      world.codeOf(
        'AssignPrivateIpAddresses',
        { NetworkInterfaceId, SecondaryPrivateIpAddressCount: 1 + (step.other % 3) },
        plan,
      ),
    unassign: () =>
      world.codeOf(
        'UnassignPrivateIpAddresses',
        { NetworkInterfaceId, PrivateIpAddresses: [{ PrivateIpAddress: second }] },
        plan,
      ),
    migrate: () =>
      world.codeOf(
        'MigratePrivateIpAddress',
        {
          SourceNetworkInterfaceId: NetworkInterfaceId,
          DestinationNetworkInterfaceId: enis[step.other % Math.max(1, enis.length)]?.eniId ?? '',
          PrivateIpAddress: second,
        },
        plan,
      ),
    terminate: () => (step.pick === 0 ? state.removeInstance(InstanceId) : undefined),
  };
  calls[step.action]?.();
  world.nowMs += step.waitMs;
  world.model.advance(world.nowMs);
}

test('model: in every history each address has one owner, and what is not free is owned', async (t) => {
  await assertLaw(
    t,
    () =>
      fc.property(fc.array(arbStep, { maxLength: 60 }), (steps) => {
        const world = new World();
        const { state } = world.model;
        for (const step of steps) take(world, step);
        world.model.advance(world.nowMs + 10_000);
        const owned = [...state.enis.values()].flatMap((eni) => [...eni.ips.keys()]);
        if (new Set(owned).size !== owned.length) return false;
        const isSettled = [...state.enis.values()].every(
          (eni) => eni.state === 'AVAILABLE' && [...eni.ips.values()].every((ip) => ip.state === 'AVAILABLE'),
        );
        return (
          isSettled &&
          [...state.subnets.values()].every((subnet) => {
            const here = [...state.enis.values()].filter((eni) => eni.subnetId === subnet.subnetId);
            return subnet.pool.total - subnet.pool.free === here.reduce((sum, eni) => sum + eni.ips.size, 0);
          })
        );
      }),
    { numRuns: 300 },
  );
});

test("model: the packets' side that plays its events has exactly what the cloud says", async (t) => {
  await assertLaw(
    t,
    () =>
      fc.property(fc.array(arbStep, { maxLength: 60 }), (steps) => {
        const world = new World();
        const { state } = world.model;
        for (const step of steps) take(world, step);
        world.model.advance(world.nowMs + 10_000);
        const ports = new Map<string, Set<string>>();
        for (const event of state.events) {
          if (event.kind === 'attach') ports.set(event.eniId, new Set());
          else if (event.kind === 'detach') ports.delete(event.eniId);
          else if (event.kind === 'assign') ports.get(event.eniId)?.add(event.ip);
          else if (event.kind === 'unassign' && ports.get(event.eniId)?.delete(event.ip) !== true) return false;
        }
        const wanted = [...state.enis.values()].filter((eni) => !eni.isPrimary && eni.attachment !== undefined);
        return (
          wanted.length === ports.size &&
          wanted.every((eni) => {
            const routed = [...(ports.get(eni.eniId) ?? [])].sort();
            const secondary = [...eni.ips.values()].filter((ip) => !ip.isPrimary).map((ip) => ip.ip);
            return routed.join() === secondary.sort().join();
          })
        );
      }),
    { numRuns: 300 },
  );
});
