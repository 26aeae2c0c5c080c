import type { ModelEni, ModelIp } from './types.ts';

/** What an instance may hold, as the limits API counts: primary ENI and primary addresses included. */
type InstanceLimits = { readonly enis: number; readonly ipsPerEni: number };

/** The product's table by cores. An independent copy: it judges the one in the source. */
export function instanceLimits(cores: number): InstanceLimits {
  if (cores <= 1) return { enis: 2, ipsPerEni: 6 };
  if (cores <= 6) return { enis: 4, ipsPerEni: 10 };
  if (cores <= 10) return { enis: 6, ipsPerEni: 20 };
  return { enis: 8, ipsPerEni: 30 };
}

/** EIPs that an instance may bind: two, and one more for every six cores, ten at most. */
export function instanceEips(cores: number): number {
  return Math.min(10, 2 + Math.floor(cores / 6));
}

/** Wire form of a moment: China's time, without saying so. */
export function writtenTime(ms: number): string {
  return new Date(ms + 8 * 3_600_000).toISOString().slice(0, 19).replace('T', ' ');
}

/** Tags in wire form. */
export function wireTags(tags: Readonly<Record<string, string>>): readonly object[] {
  return Object.entries(tags).map(([Key, Value]) => ({ Key, Value }));
}

/** Addresses of one family. */
export function ipsOf(eni: ModelEni, family: 4 | 6): readonly ModelIp[] {
  return [...eni.ips.values()].filter(({ ip }) => ip.includes(':') === (family === 6));
}

/** An ENI in wire form. */
export function wireEni(eni: ModelEni): object {
  const { attachment, state } = eni;
  return {
    NetworkInterfaceId: eni.eniId,
    NetworkInterfaceName: eni.name,
    NetworkInterfaceDescription: eni.description,
    SubnetId: eni.subnetId,
    VpcId: eni.vpcId,
    Zone: eni.zone,
    MacAddress: eni.mac.toUpperCase(),
    Primary: eni.isPrimary,
    State: state,
    NetworkInterfaceState: state === 'AVAILABLE' && attachment !== undefined ? 'INUSE' : state,
    GroupSet: [...eni.securityGroupIds],
    Attachment:
      attachment !== undefined
        ? {
            InstanceId: attachment.instanceId,
            DeviceIndex: attachment.deviceIndex,
            InstanceAccountId: '1250000000',
            AttachTime: writtenTime(attachment.atMs),
          }
        : null,
    ...(attachment === undefined ? {} : { AttachType: attachment.isExtension ? 1 : 0 }),
    PrivateIpAddressSet: ipsOf(eni, 4).map((ip) => ({
      PrivateIpAddress: ip.ip,
      Primary: ip.isPrimary,
      State: ip.state,
      AddressId: ip.eipId ?? '',
      PublicIpAddress: '',
      Description: '',
      IsWanIpBlocked: false,
    })),
    Ipv6AddressSet: ipsOf(eni, 6).map((ip) => ({
      Address: ip.ip,
      Primary: ip.isPrimary,
      State: ip.state,
      AddressId: '',
      Description: '',
      IsWanIpBlocked: false,
    })),
    TagSet: wireTags(eni.tags),
    CreatedTime: writtenTime(eni.createdAtMs),
    EniType: eni.isPrimary ? 1 : 0,
    Business: 'cvm',
  };
}
