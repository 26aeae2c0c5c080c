import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { createRotatingSource } from '../../cloud/tencent/credentials/rotating.ts';
import { openSdkApi } from '../../cloud/tencent/sdk-api.ts';
import { createTencentCloud } from '../../cloud/tencent/tencent-cloud.ts';
import { systemClock } from '../../runtime/clock.ts';
import { Child } from '../../sim/support/child.ts';
import { seededRandom } from '../../sim/support/seeded-random.ts';
import { createTempDir } from '../support/temp-dir.ts';
import { waitUntil } from '../support/wait-until.ts';

const MAIN = join(import.meta.dirname, '..', '..', 'sim', 'vpc', 'api', 'main.ts');

test('main of the cloud: serves its spec to the SDK, obeys its control address, ends when told', async (t) => {
  const dir = createTempDir('cloud');
  t.teardown(() => dir.close());
  const spec = join(dir.path, 'cloud.json');
  writeFileSync(
    spec,
    JSON.stringify({
      vpcId: 'vpc-program0',
      subnets: [{ subnetId: 'subnet-a0000000', zone: 'ap-guangzhou-3', cidr: '10.9.0.0/24' }],
      instances: [{ instanceId: 'ins-one', cores: 4, subnetId: 'subnet-a0000000' }],
    }),
  );
  const child = new Child([process.execPath, MAIN, '--spec', spec, '--task-ms', '5,10']);
  t.teardown(() => child.stop());
  const line = await waitUntil(() => child.stdout.includes('\n') && child.stdout, {
    what: 'the line that says where',
    explain: () => child.stderr,
  });
  const { endpoint, control, secretId, secretKey } = JSON.parse(line) as Record<string, string>;
  const source = createRotatingSource(systemClock, async () => ({
    credential: { secretId: secretId ?? '', secretKey: secretKey ?? '' },
  }));
  const hosts = { vpc: endpoint ?? '', cvm: endpoint ?? '', sts: endpoint ?? '' };
  const api = openSdkApi({ region: 'ap-guangzhou', hosts, protocol: 'http' }, source);
  const cloud = createTencentCloud({ api, clock: systemClock, random: seededRandom(1) });
  const context = { priority: 'pod' as const, owner: 'one', signal: new AbortController().signal };
  const [instance] = await cloud.instances.describe(['ins-one'], context);
  t.is(instance?.cores, 4);
  const { eni, task } = await cloud.enis.create(
    { vpcId: 'vpc-program0', subnetId: 'subnet-a0000000', name: 'e', ipCount: 2 },
    context,
  );
  t.deepEqual(await cloud.tasks.settle(task, context), { kind: 'done' });

  const order = async (path: string, body: object = {}): Promise<unknown> => {
    const answer = await fetch(`${control}${path}`, { method: 'POST', body: JSON.stringify(body) });
    return answer.ok ? answer.json() : answer.status;
  };
  const summary = await order('/summary');
  t.like(summary, { enis: 1, ips: 2, instances: 1 });
  const fault = { kind: 'error', code: 'UnauthorizedOperation' };
  await order('/fault', { fault, actions: ['DeleteNetworkInterface'] });
  await t.throwsAsync(cloud.enis.delete(eni.eniId, context), { message: /UnauthorizedOperation/ });
  await order('/clear-faults');
  await t.notThrowsAsync(cloud.enis.delete(eni.eniId, context));
  t.is(await order('/no-such-order'), 400);
  t.deepEqual(await child.stop(), { code: 0, signal: null });
});
