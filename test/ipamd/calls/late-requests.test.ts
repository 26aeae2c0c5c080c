import test from 'ava';
import { auditNode, openNodeScene, supplyOf } from '../support/node-scene.ts';

for (const dies of [true, false]) {
  test(`reconcileNode: gives no address again while a request to take it may still arrive, leader ${dies ? 'dead' : 'alive'}`, async (t) => {
    // As few free addresses as that each that goes back is the next to be given.
    const subnets = [
      { subnetId: 'subnet-podsa000', zone: 'ap-guangzhou-3', cidr: '10.1.0.0/28' },
      { subnetId: 'subnet-nodes000', zone: 'ap-guangzhou-3', cidr: '10.0.0.0/24' },
    ];
    const scene = await openNodeScene({ vpcId: 'vpc-0000test', subnets });
    const { pool } = scene.host.model.state.subnet('subnet-podsa000');
    while (pool.free > 10) pool.take();
    scene.want(9);
    const life = scene.lead();
    t.true(await scene.until(() => supplyOf(scene) === 9, 60_000));
    const fault = { kind: 'latency' as const, ms: 50_000 };
    // Reaches the cloud after 25 seconds, long after its sender stopped to wait for it.
    scene.host.faults.add({ fault, actions: ['UnassignPrivateIpAddresses'], times: 1 });
    scene.want(6);
    t.true(await scene.until(() => (scene.nec()?.status?.intents ?? []).length === 1));
    await scene.pass(500);
    if (dies) {
      life.crash();
      scene.lead();
    }
    scene.want(9);
    await scene.pass(300_000);
    t.true(await scene.until(() => supplyOf(scene) === 9, 300_000));
    t.deepEqual(auditNode(scene), []);
  });
}
