import { type Clock, timeoutSignal } from '../../runtime/clock.ts';
import { messageOf } from '../../runtime/error-text.ts';
import type { Logger } from '../../runtime/log.ts';
import type { CallObserver, Random } from './caller.ts';
import type { CloudSettings } from './cloud-options.ts';
import { credentialSourceOf } from './credentials/choose-source.ts';
import type { CredentialSource } from './credentials/credential.ts';
import { type HttpGet, systemHttpGet } from './credentials/fetch-sources.ts';
import { noKeyCure } from './credentials/no-key-cure.ts';
import { RegionError } from './region-error.ts';
import type { Product } from './requests.ts';
import { openSdkApi, type TencentEndpoint } from './sdk-api.ts';
import { createTencentCloud, type TencentCloud } from './tencent-cloud.ts';

/** Dependencies of opening the cloud. */
type OpenCloudDeps = {
  readonly clock: Clock;
  readonly random: Random;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly get: HttpGet;
  readonly observer?: CallObserver;
  /** Name of the program: of its Deployment, and of the role session in the cloud's audit log. */
  readonly sessionName: string;
  /** @see TencentCloudSettings */
  readonly blindEvery?: number;
};

/** The cloud, and the credentials that its calls are signed with. */
type OpenCloud = { readonly cloud: TencentCloud; readonly credentials: CredentialSource };

/**
 * Opens the cloud in the region of the settings or of this machine, for a program that goes on running.
 * @throws RegionError
 */
export async function connectCloud(
  config: CloudSettings,
  deps: Omit<OpenCloudDeps, 'get'> & { readonly log: Logger },
): Promise<TencentCloud> {
  const region = await findRegion(config, systemHttpGet);
  const { cloud, credentials } = openCloud(config, region, { ...deps, get: systemHttpGet });
  // Before the first call, which may be minutes away.
  credentials
    .get()
    .catch((error: unknown) =>
      deps.log.error('there is no key to the cloud yet, look at --credentials; will try again', { error }),
    );
  return cloud;
}

/** Opens the cloud according to the settings. Makes no call and reads no credentials before the first call. */
export function openCloud(config: CloudSettings, region: string, deps: OpenCloudDeps): OpenCloud {
  const endpoint = endpointOf(config, region);
  const { clock, random, env, get, observer, blindEvery } = deps;
  const { sessionName } = deps;
  const cure = noKeyCure(config, sessionName);
  const onKeyFailure = observer?.onKeyFailure?.bind(observer);
  const credentials = credentialSourceOf({ ...config, sessionName }, { clock, env, get, endpoint, cure, onKeyFailure });
  const api = openSdkApi(endpoint, credentials);
  const settings = { productPerSecond: config.productQps, ...(blindEvery === undefined ? {} : { blindEvery }) };
  const cloud = createTencentCloud({ api, clock, random, ...(observer && { observer }) }, settings);
  return { cloud, credentials };
}

const REGION = /^[a-z]{2,}-[a-z0-9-]+$/;
const METADATA_TIMEOUT_MS = 5_000;

/**
 * Finds the region: from the settings, or from the instance that this process runs on.
 * @throws RegionError
 * @see https://www.tencentcloud.com/document/product/213/4934 placement/region
 */
export async function findRegion(config: CloudSettings, get: HttpGet): Promise<string> {
  if (config.region !== '') return config.region;
  const url = `${config.metadataUrl}/placement/region`;
  const cure = 'set --region to the region of the VPC, such as ap-guangzhou';
  try {
    const { status, body } = await get(url, timeoutSignal(METADATA_TIMEOUT_MS));
    const region = body.trim();
    if (status === 200 && REGION.test(region)) return region;
    throw new RegionError(`${url}: no region but HTTP ${status}; ${cure}`);
  } catch (error) {
    if (error instanceof RegionError) throw error;
    throw new RegionError(`${url}: ${messageOf(error)}; ${cure}`, { cause: error });
  }
}

function endpointOf(config: CloudSettings, region: string): TencentEndpoint {
  const { domain, host, hosts } = config.endpoints;
  // With its type a product that is added here late does not compile.
  const ofAll: Readonly<Record<Product, string>> | undefined =
    host === undefined ? undefined : { vpc: host, cvm: host, clb: host, tke: host, sts: host, ssl: host };
  return {
    region,
    protocol: config.protocol,
    hosts: { ...ofAll, ...hosts },
    ...(domain === undefined ? {} : { domain }),
  };
}
