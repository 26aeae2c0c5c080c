import { writeFileSync } from 'node:fs';
import { mkdtemp, rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import { type CredentialSettings, credentialSourceOf } from '../../../cloud/tencent/credentials/choose-source.ts';
import { systemHttpGet } from '../../../cloud/tencent/credentials/fetch-sources.ts';
import { openSdkApi, type TencentEndpoint } from '../../../cloud/tencent/sdk-api.ts';
import { createTencentCloud } from '../../../cloud/tencent/tencent-cloud.ts';
import { systemClock } from '../../../runtime/clock.ts';
import { seededRandom } from '../../../sim/support/seeded-random.ts';
import { CloudHost } from '../../../sim/vpc/api/host.ts';
import { CloudServer } from '../../../sim/vpc/api/http-server.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';
import { contextOf, SPEC } from '../cloud-fixture.ts';

type Scene = {
  readonly server: CloudServer;
  readonly folder: string;
  readonly endpoint: TencentEndpoint;
  readonly settings: (change: Partial<CredentialSettings>) => CredentialSettings;
};

async function withScene(run: (scene: Scene) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'tke-test-credentials-'));
  const host = new CloudHost(SPEC, systemClock, { taskMs: [5, 10] });
  host.model.state.addInstance({ instanceId: 'ins-role', cores: 2, subnetId: 'subnet-large000', role: 'ipamd-role' });
  const server = new CloudServer(host, { webIdentityTokens: ['service-account-token'] });
  await server.start();
  const at = server.endpoint;
  try {
    await run({
      server,
      folder,
      endpoint: { region: 'ap-guangzhou', protocol: 'http', hosts: { vpc: at, cvm: at, sts: at } },
      settings: (change) => ({
        credentials: 'auto',
        credentialsFile: '',
        stsRoleArn: '',
        metadataUrl: server.metadataUrl('ins-role'),
        sessionName: 'test',
        ...change,
      }),
    });
  } finally {
    await server.close();
    await rm(folder, { recursive: true });
  }
}

/** Replaces a file as a Secret's volume does: all at once. */
async function replaceFile(path: string, content: string): Promise<void> {
  writeFileSync(`${path}.new`, content);
  await rename(`${path}.new`, path);
}

const keyText = (secretId: string, secretKey: string): string => JSON.stringify({ secretId, secretKey });

test('credentialSourceOf: auto takes the first of oidc, file, env and role that gives a key', async (t) => {
  await withScene(async ({ server, folder, endpoint, settings }) => {
    const file = join(folder, 'key.json');
    const tokenFile = join(folder, 'token');
    writeFileSync(tokenFile, 'service-account-token');
    const env = { TENCENTCLOUD_SECRET_ID: 'id-env', TENCENTCLOUD_SECRET_KEY: 'k' };
    const oidc = { TKE_PROVIDER_ID: 'p', TKE_ROLE_ARN: 'qcs::role', TKE_WEB_IDENTITY_TOKEN_FILE: tokenFile };
    const idOf = async (change: Partial<CredentialSettings>, variables: Readonly<Record<string, string>>) => {
      const deps = { clock: systemClock, env: variables, get: systemHttpGet, endpoint };
      return (await credentialSourceOf(settings(change), deps).get()).secretId;
    };
    // There is no such file yet: the next source has its turn.
    t.is(await idOf({ credentialsFile: file }, env), 'id-env');
    writeFileSync(file, keyText('id-file', 'k'));
    t.is(await idOf({ credentialsFile: file }, env), 'id-file');
    t.is(await idOf({}, env), 'id-env');
    t.is(await idOf({}, {}), 'AKIDtmp1');
    t.is(await idOf({ credentialsFile: file }, { ...env, ...oidc }), 'AKIDtmp2');
    t.is(await idOf({ credentials: 'env', credentialsFile: file }, { ...env, ...oidc }), 'id-env');
    t.is(await idOf({ credentials: 'role' }, env), 'AKIDtmp3');
    t.is(server.credentials.issued, 3);
  });
});

test('credentialSourceOf: says what each source lacks when none gives a key', async (t) => {
  await withScene(async ({ server, folder, endpoint, settings }) => {
    const deps = { clock: systemClock, env: {}, get: systemHttpGet, endpoint };
    const none = settings({ credentialsFile: join(folder, 'missing'), metadataUrl: server.metadataUrl('ins-none') });
    const error = await credentialSourceOf(none, deps)
      .get()
      .catch((caught: unknown) => caught);
    t.regex(String(error), /missing.*TENCENTCLOUD_SECRET_ID.*carries no role/s);
    const oidc = credentialSourceOf(settings({ credentials: 'oidc' }), deps);
    await t.throwsAsync(oidc.get(), { message: /TKE_PROVIDER_ID/ });
  });
});

test('credentialSourceOf: a key in a file may be rotated while calls are made: none fails', async (t) => {
  await withScene(async ({ server, folder, endpoint, settings }) => {
    const file = join(folder, 'key.json');
    server.credentials.add('id-1', 'k1');
    writeFileSync(file, keyText('id-1', 'k1'));
    // The source lives on a clock of its own: ten seconds of it pass at once.
    const clock = new VirtualClock();
    const deps = { clock, env: {}, get: systemHttpGet, endpoint };
    const source = credentialSourceOf(settings({ credentials: 'file', credentialsFile: file }), deps);
    const api = openSdkApi(endpoint, source);
    const cloud = createTencentCloud({ api, clock: systemClock, random: seededRandom(1) });
    const ask = async () => (await cloud.subnets.sweep(SPEC.vpcId, contextOf())).length;
    t.is(await ask(), 3);
    // The usual order: the new key is made, the file replaced, and some time later the old key revoked.
    server.credentials.add('id-2', 'k2');
    await replaceFile(file, keyText('id-2', 'k2'));
    await clock.advance(11_000);
    t.is(await ask(), 3);
    server.credentials.revoke('id-1');
    t.is(await ask(), 3);
    // In a hurry: revoked before anybody has looked at the file again.
    server.credentials.add('id-3', 'k3');
    await replaceFile(file, keyText('id-3', 'k3'));
    await clock.advance(5_000);
    server.credentials.revoke('id-2');
    t.is(await ask(), 3);
    t.is((await source.get()).secretId, 'id-3');
    // Half written: the old key goes on.
    writeFileSync(file, '{"secretId":');
    await clock.advance(11_000);
    t.is(await ask(), 3);
  });
});

test('credentialSourceOf: a role taken on with a key that is rotated away is taken on with the new one', async (t) => {
  await withScene(async ({ server, folder, endpoint, settings }) => {
    const file = join(folder, 'key.json');
    server.credentials.add('id-1', 'k1');
    writeFileSync(file, keyText('id-1', 'k1'));
    const clock = new VirtualClock(Date.now());
    const deps = { clock, env: {}, get: systemHttpGet, endpoint };
    const chosen = settings({ credentials: 'file', credentialsFile: file, stsRoleArn: 'qcs::cam::role' });
    const source = credentialSourceOf(chosen, deps);
    t.is((await source.get()).secretId, 'AKIDtmp1');
    server.credentials.revoke('id-1');
    server.credentials.add('id-2', 'k2');
    await replaceFile(file, keyText('id-2', 'k2'));
    // The role's key expires after two hours; nobody called meanwhile.
    await clock.advance(7_300_000);
    t.is((await source.get()).secretId, 'AKIDtmp2');
  });
});
