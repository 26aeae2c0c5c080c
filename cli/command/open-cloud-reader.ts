import type { CallContext, Cloud } from '../../cloud/cloud.ts';
import { isCloudError } from '../../cloud/cloud-error.ts';
import type { EniQuotaPort } from '../../cloud/eni-quotas.ts';
import type { ListenerPort } from '../../cloud/listeners.ts';
import type { LoadBalancerPort } from '../../cloud/load-balancers.ts';
import type { RewritePort } from '../../cloud/rewrites.ts';
import type { TargetPort } from '../../cloud/targets.ts';
import type { TencentEndpoint } from '../../cloud/tencent/sdk-api.ts';
import { timeoutSignal } from '../../runtime/clock.ts';
import { messageOf } from '../../runtime/error-text.ts';
import { UserError } from '../../runtime/user-error.ts';
import type { CommandContext } from './command.ts';

/** Region and endpoint of the cloud's API as the user gave them; undefined where the default applies. */
export type CloudLocation = { readonly region: string | undefined; readonly endpoint: string | undefined };

/** The read-only calls of the cloud's API that the CLI uses. */
export type ReadableCloud = {
  readonly instances: Pick<Cloud['instances'], 'describe'>;
  readonly enis: Pick<Cloud['enis'], 'describe' | 'sweep'>;
  readonly securityGroups: Pick<Cloud['securityGroups'], 'ingress'>;
  readonly subnets: Pick<Cloud['subnets'], 'describe'>;
  readonly eniQuotas: EniQuotaPort;
  readonly loadBalancers: Pick<LoadBalancerPort, 'find' | 'describe' | 'quotas'>;
  readonly listeners: Pick<ListenerPort, 'list'>;
  readonly rewrites: Pick<RewritePort, 'list'>;
  readonly targets: Pick<TargetPort, 'list' | 'health'>;
};

/** Reader of the cloud's API that turns errors into UserError. */
export type CloudReader = {
  /** Runs one read-only request. @throws UserError NO_CLOUD, or the signal's reason */
  read<T>(query: (cloud: ReadableCloud, call: CallContext) => Promise<T>): Promise<T>;
};

/**
 * Timeouts, retries and waits included. They are short because a user waits; a sweep of a large VPC needs many calls.
 */
const CALL_MS = 20_000;
const SWEEP_MS = 300_000;
const METADATA_URL = 'http://metadata.tencentyun.com/latest/meta-data';
const METADATA_MS = 3_000;

type Context = Pick<CommandContext, 'env' | 'clock' | 'signal'>;

/**
 * Opens the cloud's API for reading. Keys and region come from the environment or from the instance's metadata. The SDK
 * is loaded by this call. @throws UserError NO_CLOUD, USAGE
 */
export async function openCloudReader(context: Context, location: CloudLocation): Promise<CloudReader> {
  const { env, clock, signal } = context;
  const [{ credentialSourceOf }, { systemHttpGet }, { openSdkApi }, { createTencentCloud }] = await Promise.all([
    import('../../cloud/tencent/credentials/choose-source.ts'),
    import('../../cloud/tencent/credentials/fetch-sources.ts'),
    import('../../cloud/tencent/sdk-api.ts'),
    import('../../cloud/tencent/tencent-cloud.ts'),
  ]);
  const endpoint = { region: await findRegion(context, location.region), ...endpointOf(location.endpoint) };
  const settings = { credentials: 'auto', credentialsFile: '', stsRoleArn: '', metadataUrl: METADATA_URL } as const;
  const credentials = credentialSourceOf(
    { ...settings, sessionName: 'tke-eni' },
    { clock, env, get: systemHttpGet, endpoint },
  );
  const api = openSdkApi(endpoint, credentials);
  // One reader makes few calls. Their retries need no random jitter to keep apart from other clients.
  const cloud = createTencentCloud({ api, clock, random: () => 0.5 });
  const call = { priority: 'gc', owner: 'tke-eni', signal, timeoutMs: SWEEP_MS } as const;
  const read: CloudReader['read'] = async (query) => {
    try {
      return await query(cloud, call);
    } catch (error) {
      if (signal.aborted) throw error;
      throw noCloud(error);
    }
  };
  await read(() => credentials.get(AbortSignal.any([signal, timeoutSignal(CALL_MS)])));
  return { read };
}

async function findRegion({ env, signal }: Context, option: string | undefined): Promise<string> {
  const named = option ?? env['TENCENTCLOUD_REGION'];
  if (named !== undefined && named !== '') return named;
  try {
    const limit = AbortSignal.any([signal, timeoutSignal(METADATA_MS)]);
    const { systemHttpGet } = await import('../../cloud/tencent/credentials/fetch-sources.ts');
    const { status, body } = await systemHttpGet(`${METADATA_URL}/placement/region`, limit);
    if (status !== 200) throw new Error(`HTTP ${status}`);
    return body.trim();
  } catch (error) {
    const next = 'give --region, or set TENCENTCLOUD_REGION, such as ap-guangzhou';
    throw new UserError('NO_CLOUD', `the region is not known: ${METADATA_URL}: ${String(error)}`, next, {
      cause: error,
    });
  }
}

/** Parses an endpoint that replaces the usual one, 'http://host:port'; the scheme alone decides whether TLS is used. */
function endpointOf(endpoint: string | undefined): Partial<TencentEndpoint> {
  if (endpoint === undefined) return {};
  if (!URL.canParse(endpoint)) {
    throw new UserError('USAGE', `--endpoint: "${endpoint}" is no URL`, 'write it as http://host:port or https://host');
  }
  const { protocol, host } = new URL(endpoint);
  return { protocol: protocol === 'http:' ? 'http' : 'https', hosts: { vpc: host, cvm: host, clb: host, sts: host } };
}

function noCloud(error: unknown): UserError {
  const reason = messageOf(error);
  return new UserError('NO_CLOUD', `the cloud did not answer: ${reason}`, nextAfter(error), { cause: error });
}

function nextAfter(error: unknown): string {
  if (!isCloudError(error, 'credentials')) return 'try again, or leave --cloud out';
  return error.code === 'CREDENTIALS'
    ? 'set TENCENTCLOUD_SECRET_ID and TENCENTCLOUD_SECRET_KEY, or run where the instance has a role; or leave --cloud out'
    : "look at the key in TENCENTCLOUD_SECRET_ID and TENCENTCLOUD_SECRET_KEY or of the instance's role, and at the clock of this machine; or leave --cloud out";
}
