import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import { isCloudError } from '../../../cloud/cloud-error.ts';
import type { FetchedCredential } from '../../../cloud/tencent/credentials/credential.ts';
import {
  fromAssumedRole,
  fromEnvironment,
  fromFile,
  fromFirstOf,
  fromInstanceRole,
  fromWebIdentity,
  systemHttpGet,
  webIdentityOfEnvironment,
} from '../../../cloud/tencent/credentials/fetch-sources.ts';
import { createRotatingSource } from '../../../cloud/tencent/credentials/rotating.ts';
import type { TencentApi } from '../../../cloud/tencent/requests.ts';
import { openSdkApi } from '../../../cloud/tencent/sdk-api.ts';
import { createTencentCloud } from '../../../cloud/tencent/tencent-cloud.ts';
import { systemClock } from '../../../runtime/clock.ts';
import { seededRandom } from '../../../sim/support/seeded-random.ts';
import { CloudHost } from '../../../sim/vpc/api/host.ts';
import { CloudServer } from '../../../sim/vpc/api/http-server.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';
import { contextOf, SPEC } from '../cloud-fixture.ts';

const NEVER = new AbortController().signal;

const folder = mkdtempSync(join(tmpdir(), 'tke-test-credentials-'));
test.after.always(() => rmSync(folder, { recursive: true, force: true }));

async function withServer(run: (server: CloudServer) => Promise<void>): Promise<void> {
  const host = new CloudHost(SPEC, systemClock);
  host.model.state.addInstance({ instanceId: 'ins-role', cores: 2, subnetId: 'subnet-large000', role: 'ipamd-role' });
  host.model.state.addInstance({ instanceId: 'ins-plain', cores: 2, subnetId: 'subnet-large000' });
  const server = new CloudServer(host, { webIdentityTokens: ['service-account-token'] });
  await server.start();
  try {
    await run(server);
  } finally {
    await server.close();
  }
}

function apiOf(server: CloudServer, source: Parameters<typeof openSdkApi>[1]) {
  const hosts = { vpc: server.endpoint, cvm: server.endpoint, sts: server.endpoint };
  return openSdkApi({ region: 'ap-guangzhou', hosts, protocol: 'http' }, source);
}

test('fromEnvironment: takes a key with or without a token, and names what is missing', async (t) => {
  const env = { TENCENTCLOUD_SECRET_ID: 'id', TENCENTCLOUD_SECRET_KEY: 'key' };
  t.deepEqual((await fromEnvironment(env)(NEVER)).credential, { secretId: 'id', secretKey: 'key' });
  const withToken = await fromEnvironment({ ...env, TENCENTCLOUD_SESSION_TOKEN: 'token' })(NEVER);
  t.is(withToken.credential.token, 'token');
  await t.throwsAsync(fromEnvironment({})(NEVER), {
    message: 'environment: TENCENTCLOUD_SECRET_ID and TENCENTCLOUD_SECRET_KEY not set',
  });
});

test('fromFile, fromWebIdentity: a FIFO in the place of the file is refused at once, and holds no thread', async (t) => {
  const path = join(folder, 'fifo');
  execFileSync('mkfifo', [path]);
  const unused: TencentApi = { call: async () => t.fail('a call without a token'), renewCredentials: () => {} };
  const sources = [
    fromFile(path),
    fromWebIdentity(unused, { providerId: 'p', roleArn: 'r', sessionName: 's', tokenFile: path }),
  ];
  for (const fetch of sources) {
    const isOver = AbortSignal.timeout(20_000);
    const over = new Promise<never>((_, reject) => {
      isOver.addEventListener('abort', () => reject(new Error('the source does not answer')));
    });
    await t.throwsAsync(Promise.race([fetch(isOver), over]), { message: /fifo is a FIFO, not a regular file/ });
  }
});

test("fromFile: reads JSON and the SDK's own form, and says which file is wrong and how", async (t) => {
  const write = (name: string, content: string): string => {
    const path = join(folder, name);
    writeFileSync(path, content);
    return path;
  };
  const json = await fromFile(write('a.json', '{"secretId":"i","secretKey":"k","token":"t"}'))(NEVER);
  t.deepEqual(json.credential, { secretId: 'i', secretKey: 'k', token: 't' });
  const lines = await fromFile(write('b.ini', '[default]\nsecret_id = i\nsecret_key=k\n'))(NEVER);
  t.deepEqual(lines.credential, { secretId: 'i', secretKey: 'k' });
  await t.throwsAsync(fromFile(write('c.json', '{"secretId":"i","secretkey":"k"}'))(NEVER), {
    message: /c\.json: secretKey: expected a value.*secretkey: expected no such field/,
  });
  await t.throwsAsync(fromFile(write('d.json', '{'))(NEVER), { message: /d\.json: no JSON/ });
});

test("fromInstanceRole: gets the role's key from the metadata service, and says that there is no role", async (t) => {
  await withServer(async (server) => {
    const fetched = await fromInstanceRole(systemHttpGet, server.metadataUrl('ins-role'))(NEVER);
    t.truthy(fetched.credential.token);
    t.true((fetched.expiresAtMs ?? 0) > Date.now());
    await t.throwsAsync(fromInstanceRole(systemHttpGet, server.metadataUrl('ins-plain'))(NEVER), {
      message: /carries no role/,
    });
  });
});

test('fromWebIdentity, fromAssumedRole: keys that the cloud then accepts', async (t) => {
  await withServer(async (server) => {
    const tokenFile = join(folder, 'token');
    writeFileSync(tokenFile, 'service-account-token\n');
    const env = { TKE_PROVIDER_ID: 'p', TKE_ROLE_ARN: 'qcs::role', TKE_WEB_IDENTITY_TOKEN_FILE: tokenFile };
    const identity = webIdentityOfEnvironment(env, 'tke-eni-ipamd');
    t.truthy(identity);
    if (identity === undefined) return;
    const noKey = createRotatingSource(systemClock, () => Promise.reject(new Error('no key of its own')));
    const web = createRotatingSource(systemClock, fromWebIdentity(apiOf(server, noKey), identity));
    const role = fromAssumedRole(apiOf(server, web), { roleArn: 'qcs::other', sessionName: 's', durationSeconds: 900 });
    const cloud = createTencentCloud({
      api: apiOf(server, createRotatingSource(systemClock, role)),
      clock: systemClock,
      random: seededRandom(1),
    });
    t.is((await cloud.subnets.sweep(SPEC.vpcId, contextOf())).length, 3);
    t.is(server.credentials.issued, 2);
    t.is(webIdentityOfEnvironment({}, 's'), undefined);
  });
});

test('createTencentCloud: goes on when its key is revoked while it runs, and asks for one new key only', async (t) => {
  await withServer(async (server) => {
    const source = createRotatingSource(systemClock, fromInstanceRole(systemHttpGet, server.metadataUrl('ins-role')));
    const cloud = createTencentCloud({ api: apiOf(server, source), clock: systemClock, random: seededRandom(1) });
    t.is((await cloud.subnets.sweep(SPEC.vpcId, contextOf())).length, 3);
    server.credentials.revoke();
    // A key that was fetched within the last second is not thrown away.
    await systemClock.sleep(1_050);
    const calls = ['subnet-large000', 'subnet-small000'].map((id) => cloud.subnets.describe([id], contextOf()));
    const instances = cloud.instances.describe(['ins-role'], contextOf());
    t.is((await Promise.all(calls)).flat().length, 2);
    t.is((await instances).length, 1);
    t.is(server.credentials.issued, 2);
  });
});

test('createRotatingSource: renews before the end, meanwhile signs with the old, survives failed renewals', async (t) => {
  const clock = new VirtualClock();
  let fetches = 0;
  let isAway = false;
  const fetch = async (): Promise<FetchedCredential> => {
    if (isAway) throw new Error('metadata service is away');
    fetches += 1;
    return { credential: { secretId: `id-${fetches}`, secretKey: 'k' }, expiresAtMs: clock.nowMs() + 3_600_000 };
  };
  const source = createRotatingSource(clock, fetch);
  const idNow = async () => (await source.get()).secretId;
  t.deepEqual(await Promise.all([idNow(), idNow()]), ['id-1', 'id-1']);
  await clock.advance(3_300_001);
  t.is(await idNow(), 'id-1');
  await clock.advance(1);
  t.is(await idNow(), 'id-2');
  isAway = true;
  await clock.advance(3_400_000);
  t.is(await idNow(), 'id-2');
  await clock.advance(300_000);
  const error = await source.get().catch((caught: unknown) => caught);
  t.true(isCloudError(error, 'credentials'));
  t.regex(String(error), /metadata service is away/);
  isAway = false;
  t.is(await idNow(), 'id-3');
});

test('createRotatingSource: notices a changed key without an expiry', async (t) => {
  const clock = new VirtualClock();
  let secretId = 'old';
  const source = createRotatingSource(clock, async () => ({ credential: { secretId, secretKey: 'k' } }));
  t.is((await source.get()).secretId, 'old');
  secretId = 'new';
  await clock.advance(10_000);
  await source.get();
  await clock.advance(1);
  t.is((await source.get()).secretId, 'new');
});

test('fromFirstOf: takes the first that gives, else tells what each said', async (t) => {
  const nothing = (why: string) => () => Promise.reject(new Error(why));
  const given: FetchedCredential = { credential: { secretId: 'i', secretKey: 'k' } };
  t.is(await fromFirstOf([nothing('a'), async () => given])(NEVER), given);
  await t.throwsAsync(fromFirstOf([nothing('a'), nothing('b')])(NEVER), { message: 'no credentials: a; b' });
});
