import type { CredentialBook } from './credential-book.ts';
import { ipsOf } from './model/limits.ts';
import type { CloudState } from './model/state.ts';
import type { ModelEni, ModelInstance } from './model/types.ts';

/** What the metadata service knows beside the cloud itself. */
export type MetadataSettings = {
  readonly region: string;
  /** How long a role's key lives, milliseconds. */
  readonly roleKeyMs: number;
};

/**
 * Answers `path` (below `latest/meta-data/`) as an instance's metadata service; undefined where it would say 404.
 * @see https://www.tencentcloud.com/document/product/213/4934
 */
export function answerMetadata(
  state: CloudState,
  credentials: CredentialBook,
  settings: MetadataSettings,
  instance: ModelInstance,
  path: string,
): string | undefined {
  const enis = state.enisOf(instance.instanceId);
  const primary = enis.find((eni) => eni.isPrimary);
  const [head = '', ...rest] = path.split('/').filter((part) => part !== '');
  switch (head) {
    case 'instance-id':
      return instance.instanceId;
    case 'mac':
      return primary?.mac;
    case 'local-ipv4':
      return primary === undefined ? undefined : primaryIp(primary);
    case 'placement':
      if (rest[0] === 'region') return settings.region;
      return rest[0] === 'zone' ? instance.zone : undefined;
    case 'network':
      return rest[0] === 'interfaces' && rest[1] === 'macs' ? answerMacs(state, enis, rest.slice(2)) : undefined;
    case 'cam':
      return rest[0] === 'security-credentials'
        ? answerRole(state, credentials, settings, instance, rest[1])
        : undefined;
    default:
      return undefined;
  }
}

function answerMacs(state: CloudState, enis: readonly ModelEni[], path: readonly string[]): string | undefined {
  const [mac, field, ip, detail] = path;
  if (mac === undefined) return enis.map((eni) => `${eni.mac}/`).join('\n');
  const eni = enis.find((candidate) => candidate.mac === mac.toLowerCase());
  if (eni === undefined) return undefined;
  const { pool } = state.subnet(eni.subnetId);
  switch (field) {
    case 'primary-local-ipv4':
      return primaryIp(eni);
    case 'vpc-id':
      return eni.vpcId;
    case 'subnet-id':
      return eni.subnetId;
    case 'local-ipv4s':
      if (ip === undefined)
        return ipsOf(eni, 4)
          .map((one) => `${one.ip}/`)
          .join('\n');
      if (!ipsOf(eni, 4).some((one) => one.ip === ip)) return undefined;
      if (detail === 'gateway') return pool.gateway;
      return detail === 'subnet-mask' ? maskOf(pool.cidr) : undefined;
    default:
      return undefined;
  }
}

function answerRole(
  state: CloudState,
  credentials: CredentialBook,
  settings: MetadataSettings,
  instance: ModelInstance,
  role: string | undefined,
): string | undefined {
  if (instance.role === undefined) return undefined;
  if (role === undefined) return instance.role;
  if (role !== instance.role) return undefined;
  const key = credentials.issue(state.nowMs, settings.roleKeyMs);
  const ExpiredTime = Math.floor(key.expiresAtMs / 1000);
  return JSON.stringify({
    TmpSecretId: key.secretId,
    TmpSecretKey: key.secretKey,
    Token: key.token,
    ExpiredTime,
    Expiration: new Date(key.expiresAtMs).toISOString(),
    Code: 'Success',
  });
}

function primaryIp(eni: ModelEni): string | undefined {
  return [...eni.ips.values()].find((ip) => ip.isPrimary)?.ip;
}

function maskOf(cidr: string): string {
  const length = Number(cidr.split('/')[1]);
  const bits = 2 ** 32 - 2 ** (32 - length);
  return [24, 16, 8, 0].map((shift) => Math.floor(bits / 2 ** shift) % 256).join('.');
}
