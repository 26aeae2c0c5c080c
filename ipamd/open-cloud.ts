import type { CallObserver, Random } from '../cloud/tencent/caller.ts';
import type { CredentialSource, FetchCredential } from '../cloud/tencent/credentials/credential.ts';
import {
  fromAssumedRole,
  fromEnvironment,
  fromFile,
  fromFirstOf,
  fromInstanceRole,
  fromWebIdentity,
  type HttpGet,
  webIdentityOfEnvironment,
} from '../cloud/tencent/credentials/fetch-sources.ts';
import { createRotatingSource } from '../cloud/tencent/credentials/rotating.ts';
import { openSdkApi, type TencentEndpoint } from '../cloud/tencent/sdk-api.ts';
import { createTencentCloud, type TencentCloud } from '../cloud/tencent/tencent-cloud.ts';
import type { Clock } from '../runtime/clock.ts';
import type { IpamdConfig } from './config/options.ts';
import { IpamdError } from './ipamd-error.ts';

/** What the cloud is opened with. */
export type OpenCloudDeps = {
  readonly clock: Clock;
  readonly random: Random;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly get: HttpGet;
  readonly observer?: CallObserver;
};

/** The cloud, and the key that its calls are signed with. */
export type OpenCloud = { readonly cloud: TencentCloud; readonly credentials: CredentialSource };

/** Opens the cloud as the settings say. Calls nothing before the first call, and asks for no key. */
export function openCloud(config: IpamdConfig, region: string, deps: OpenCloudDeps): OpenCloud {
  const endpoint = endpointOf(config, region);
  const { clock, random, observer } = deps;
  const credentials = openCredentials(config, endpoint, deps);
  const api = openSdkApi(endpoint, credentials);
  const settings = { productPerSecond: config.productQps };
  const cloud = createTencentCloud({ api, clock, random, ...(observer && { observer }) }, settings);
  return { cloud, credentials };
}

const REGION = /^[a-z]{2,}-[a-z0-9-]+$/;
const METADATA_TIMEOUT_MS = 5_000;

/**
 * Finds the region: of the settings, or of the instance that this runs on.
 * @throws IpamdError REGION
 * @see https://www.tencentcloud.com/document/product/213/4934 placement/region
 */
export async function findRegion(config: IpamdConfig, get: HttpGet): Promise<string> {
  if (config.region !== '') return config.region;
  const url = `${config.metadataUrl}/placement/region`;
  const cure = 'set --region to the region of the VPC, such as ap-guangzhou';
  try {
    const { status, body } = await get(url, AbortSignal.timeout(METADATA_TIMEOUT_MS));
    const region = body.trim();
    if (status === 200 && REGION.test(region)) return region;
    throw new IpamdError('REGION', `${url}: no region but HTTP ${status}; ${cure}`);
  } catch (error) {
    if (error instanceof IpamdError) throw error;
    throw new IpamdError('REGION', `${url}: ${reasonOf(error)}; ${cure}`, { cause: error });
  }
}

/** What fetch throws says why in its cause alone. */
function reasonOf(error: unknown): string {
  const { cause } = error instanceof Error ? error : { cause: undefined };
  return cause instanceof Error && cause.message !== '' ? cause.message : String(error);
}

function endpointOf(config: IpamdConfig, region: string): TencentEndpoint {
  const { domain, host, hosts } = config.endpoints;
  const ofAll = host === undefined ? {} : { vpc: host, cvm: host, sts: host };
  return {
    region,
    protocol: config.protocol,
    hosts: { ...ofAll, ...hosts },
    ...(domain === undefined ? {} : { domain }),
  };
}

/** Under this name the cloud's audit shows who took on a role. */
const SESSION = 'tke-eni-ipamd';

function openCredentials(config: IpamdConfig, endpoint: TencentEndpoint, deps: OpenCloudDeps): CredentialSource {
  const own = createRotatingSource(deps.clock, fetchOf(config, endpoint, deps));
  if (config.stsRoleArn === '') return own;
  const role = { roleArn: config.stsRoleArn, sessionName: SESSION };
  return createRotatingSource(deps.clock, fromAssumedRole(openSdkApi(endpoint, own), role));
}

function fetchOf(config: IpamdConfig, endpoint: TencentEndpoint, { env, get }: OpenCloudDeps): FetchCredential {
  const identity = webIdentityOfEnvironment(env, SESSION);
  const unsigned: CredentialSource = { get: async () => ({ secretId: '', secretKey: '' }), invalidate: () => {} };
  const oidc: FetchCredential =
    identity === undefined
      ? () =>
          Promise.reject(new Error('environment: TKE_PROVIDER_ID, TKE_ROLE_ARN, TKE_WEB_IDENTITY_TOKEN_FILE not set'))
      : fromWebIdentity(openSdkApi(endpoint, unsigned), identity);
  const file = fromFile(config.credentialsFile);
  const environment = fromEnvironment(env);
  const role = fromInstanceRole(get, config.metadataUrl);
  switch (config.credentials) {
    case 'oidc':
      return oidc;
    case 'file':
      return file;
    case 'env':
      return environment;
    case 'role':
      return role;
    case 'auto':
      return fromFirstOf([
        ...(identity === undefined ? [] : [oidc]),
        ...(config.credentialsFile === '' ? [] : [file]),
        environment,
        role,
      ]);
  }
}
