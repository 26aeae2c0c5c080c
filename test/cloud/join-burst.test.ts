import test from 'ava';
import { createTencentCloud } from '../../cloud/tencent/tencent-cloud.ts';
import { seededRandom } from '../../sim/support/seeded-random.ts';
import type { FaultRule } from '../../sim/vpc/api/faults.ts';
import { CloudHost } from '../../sim/vpc/api/host.ts';
import { createInProcessApi } from '../../sim/vpc/api/in-process.ts';
import { VirtualClock } from '../support/virtual-clock.ts';
import { contextOf } from './cloud-fixture.ts';

const NODES = 400;
const CALLS_PER_NODE = 2;
const PRODUCT_PER_SECOND = 50;

/** Seconds of virtual time until every node has an attached ENI with ten addresses, and how many calls it took. */
async function join(rules: readonly FaultRule[]) {
  const clock = new VirtualClock();
  const subnets = [{ subnetId: 'subnet-join0000', zone: 'z', cidr: '10.0.0.0/16' }];
  const host = new CloudHost({ vpcId: 'vpc-join', subnets, vpcEnis: 10_000 }, clock, {
    latencyMs: [50, 200],
    taskMs: [1_000, 3_000],
  });
  for (const rule of rules) host.faults.add(rule);
  const cloud = createTencentCloud({ api: createInProcessApi(host), clock, random: seededRandom(3) });
  const one = async (index: number): Promise<void> => {
    const instanceId = `ins-${index}`;
    host.model.state.addInstance({ instanceId, cores: 8, subnetId: 'subnet-join0000' });
    const context = contextOf({ owner: instanceId, priority: 'warm', timeoutMs: 3_600_000 });
    const spec = {
      vpcId: 'vpc-join',
      subnetId: 'subnet-join0000',
      name: `n-${index}`,
      ipCount: 10,
      clientToken: `c-${index}`,
    };
    const { eni, task } = await cloud.enis.create(spec, context);
    await cloud.tasks.settle(task, context);
    await cloud.tasks.settle(await cloud.enis.attach(eni.eniId, instanceId, context, { clientToken: `a-${index}` }), {
      ...context,
      isNew: true,
    });
  };
  await clock.run(Promise.all(Array.from({ length: NODES }, (_, index) => one(index))));
  const enis = [...host.model.state.enis.values()].filter((eni) => !eni.isPrimary);
  return { seconds: clock.monotonicMs() / 1000, calls: host.seen.length, enis };
}

test('cloud: four hundred nodes that join at once take little longer than fifty calls a second allow', async (t) => {
  const { seconds, calls, enis } = await join([]);
  const boundSeconds = (NODES * CALLS_PER_NODE) / PRODUCT_PER_SECOND;
  // What is added are the last node's own tasks: two of three seconds at most, each seen a second later.
  t.true(seconds <= 1.15 * boundSeconds + 8, `${seconds} s, bound ${boundSeconds} s`);
  t.true(calls <= NODES * CALLS_PER_NODE * 1.05, `${calls} calls`);
  t.is(enis.length, NODES);
});

test('cloud: a fifth of the calls go wrong, and still every node gets its one ENI', async (t) => {
  const { seconds, enis } = await join([
    { probability: 0.08, fault: { kind: 'error', code: 'RequestLimitExceeded' } },
    { probability: 0.05, fault: { kind: 'error', code: 'InternalError', after: true } },
    { probability: 0.04, fault: { kind: 'reset', after: true } },
    { probability: 0.03, fault: { kind: 'http', status: 503 } },
  ]);
  const boundSeconds = (NODES * CALLS_PER_NODE) / PRODUCT_PER_SECOND;
  t.true(seconds <= 2 * boundSeconds + 30, `${seconds} s, bound ${boundSeconds} s`);
  t.is(enis.length, NODES);
  t.true(enis.every((eni) => eni.attachment !== undefined && eni.ips.size === 11));
});
