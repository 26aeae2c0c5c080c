import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { systemHttpGet } from '../../../cloud/tencent/credentials/fetch-sources.ts';
import { findRegion, openCloud } from '../../../cloud/tencent/open-cloud.ts';
import { type Clock, systemClock } from '../../../runtime/clock.ts';
import { seededRandom } from '../../../sim/support/seeded-random.ts';
import { CloudHost } from '../../../sim/vpc/api/host.ts';
import { CloudServer } from '../../../sim/vpc/api/http-server.ts';
import { CLOUD, ipamdConfig } from '../../ipamd/shell/shell-scene.ts';

const HOME = 'ins-ipamdhome';
const ROLE_ARN = 'qcs::cam::uin/100000000001:roleName/ipamd';

/** A cloud that takes the key AKIDgood and the web identity token `sa-token`, and a file with either. */
async function start(t: ExecutionContext) {
  const dir = mkdtempSync(join(tmpdir(), 'tke-test-cloud-'));
  const host = new CloudHost(CLOUD, systemClock, { seed: 4 });
  host.model.state.addInstance({ instanceId: HOME, cores: 4, subnetId: 'subnet-node0001', role: 'ipamd' });
  const server = new CloudServer(host, { webIdentityTokens: ['sa-token'] });
  await server.start();
  const key = server.credentials.add('AKIDgood', 'good-secret');
  const keyFile = join(dir, 'key.json');
  writeFileSync(keyFile, JSON.stringify(key));
  writeFileSync(join(dir, 'token'), 'sa-token\n');
  t.teardown(async () => {
    await server.close();
    rmSync(dir, { recursive: true, force: true });
  });
  const configOf = (...flags: readonly string[]) =>
    ipamdConfig(
      `--endpoint=${server.endpoint}`,
      '--protocol=http',
      `--metadata-url=${server.metadataUrl(HOME)}`,
      ...flags,
    );
  const later = { ms: 0 };
  const clock: Clock = { ...systemClock, nowMs: () => systemClock.nowMs() + later.ms };
  const open = (flags: readonly string[], env: Readonly<Record<string, string>> = {}) => {
    const deps = { clock, random: seededRandom(1), env, get: systemHttpGet, sessionName: 'test' };
    return openCloud(configOf(...flags), 'ap-guangzhou', deps);
  };
  /** Describes the subnets, with the settings and variables given. */
  const describe = async (flags: readonly string[], env: Readonly<Record<string, string>> = {}) => {
    const { cloud } = open(flags, env);
    const { signal } = new AbortController();
    const subnets = await cloud.subnets.sweep(CLOUD.vpcId, { priority: 'pod', owner: 't', signal, timeoutMs: 5_000 });
    return subnets.length;
  };
  return { dir, server, keyFile, configOf, open, describe, later };
}

const ENV = { TENCENTCLOUD_SECRET_ID: 'AKIDgood', TENCENTCLOUD_SECRET_KEY: 'good-secret' };

test('openCloud: a host of --endpoint is that of every product', async (t) => {
  const { open } = await start(t);
  const { cloud } = open(['--credentials=env'], ENV);
  const { signal } = new AbortController();
  const context = { priority: 'pod', owner: 't', signal, timeoutMs: 5_000 } as const;
  t.deepEqual((await cloud.certificates.find({}, context)).certificates, []);
  t.true(Array.isArray(await cloud.podLimits('S5.LARGE8', context)));
});

test('openCloud: signs with the key that --credentials names', async (t) => {
  const { dir, keyFile, describe } = await start(t);
  const identity = {
    TKE_PROVIDER_ID: 'provider',
    TKE_ROLE_ARN: ROLE_ARN,
    TKE_WEB_IDENTITY_TOKEN_FILE: join(dir, 'token'),
  };
  t.is(await describe(['--credentials=env'], ENV), 2);
  t.is(await describe(['--credentials=file', `--credentials-file=${keyFile}`]), 2);
  t.is(await describe(['--credentials=role']), 2);
  t.is(await describe(['--credentials=oidc'], identity), 2);
});

test('openCloud: takes the first source that gives a key when it is to find one by itself', async (t) => {
  const { keyFile, describe } = await start(t);
  t.is(await describe([]), 2);
  t.is(await describe([`--credentials-file=${keyFile}`], { TENCENTCLOUD_SECRET_ID: 'AKIDwrong' }), 2);
  t.is(await describe(['--metadata-url=http://127.0.0.1:1'], ENV), 2);
});

test('openCloud: takes a role on with the key', async (t) => {
  const { server, describe } = await start(t);
  t.is(await describe(['--credentials=env', `--sts-role-arn=${ROLE_ARN}`], ENV), 2);
  server.credentials.revoke('AKIDgood');
  await t.throwsAsync(describe(['--credentials=env', `--sts-role-arn=${ROLE_ARN}`], ENV), { name: 'CloudError' });
});

test('openCloud: takes a role on with the new key when the old one was rotated away', async (t) => {
  const { server, keyFile, open, later } = await start(t);
  const { credentials } = open(['--credentials=file', `--credentials-file=${keyFile}`, `--sts-role-arn=${ROLE_ARN}`]);
  await credentials.get();
  writeFileSync(keyFile, JSON.stringify(server.credentials.add('AKIDnext', 'next-secret')));
  server.credentials.revoke('AKIDgood');
  // What was just fetched is not fetched again at once.
  later.ms = 60_000;
  credentials.invalidate();
  await t.notThrowsAsync(credentials.get());
});

test('openCloud: says what is missing when there is no key', async (t) => {
  const { open } = await start(t);
  const why = (...flags: readonly string[]) => open(flags).credentials.get();
  await t.throwsAsync(why('--credentials=env'), { code: 'CREDENTIALS', message: /TENCENTCLOUD_SECRET_ID/ });
  await t.throwsAsync(why('--credentials=oidc'), { code: 'CREDENTIALS', message: /TKE_PROVIDER_ID/ });
  await t.throwsAsync(why('--credentials=file', '--credentials-file=/none'), {
    code: 'CREDENTIALS',
    message: /ENOENT/,
  });
  await t.throwsAsync(why('--metadata-url=http://127.0.0.1:1'), {
    code: 'CREDENTIALS',
    message: /TENCENTCLOUD_SECRET_ID.*;/,
  });
});

test('findRegion: takes the flag, else asks the instance, else says what to do', async (t) => {
  const { configOf } = await start(t);
  t.is(await findRegion(configOf('--region=ap-nanjing'), systemHttpGet), 'ap-nanjing');
  t.is(await findRegion(configOf('--region='), systemHttpGet), 'ap-guangzhou');
  const nobody = configOf('--region=', '--metadata-url=http://127.0.0.1:1');
  await t.throwsAsync(findRegion(nobody, systemHttpGet), { code: 'REGION', message: /set --region/ });
});

test('openCloud: load balancers are called at the host of all products, or at their own', async (t) => {
  const { server, open } = await start(t);
  const limitOf = async (endpoints: string): Promise<number | undefined> => {
    const { cloud } = open(['--credentials=env', `--endpoint=${endpoints}`], ENV);
    const { signal } = new AbortController();
    const quotas = await cloud.loadBalancers.quotas({ priority: 'pod', owner: 't', signal, timeoutMs: 5_000 });
    return quotas.listeners?.limit;
  };
  t.is(await limitOf(server.endpoint), 50);
  t.is(await limitOf(`127.0.0.1:1,clb=${server.endpoint}`), 50);
});
