import type { Instance, Zone } from '../../cloud/cloud.ts';
import { INSTANCE_TYPE_LABEL, ZONE_LABEL } from '../../crd/foreign-names.ts';

/** How zone and region are written in labels: upstream's names, or as TKE does the zone's number and a short region. */
export type ZoneLabelForm = 'name' | 'number';

/** Labels of a Node. */
type NodeLabels = {
  /** What the instance has, which a resize changes: kept as the instance has it. */
  readonly resources: Readonly<Record<string, string>>;
  /** Well-known ones of its place: the cloud provider owns them. */
  readonly wellKnown: Readonly<Record<string, string>>;
  /** Further ones: only written where there is none. */
  readonly extra: Readonly<Record<string, string>>;
};

/** TKE's short names of regions. A region that is not listed is written with its whole name. */
const SHORT_REGIONS: Readonly<Record<string, string>> = {
  'ap-bangkok': 'th',
  'ap-beijing': 'bj',
  'ap-chengdu': 'cd',
  'ap-chongqing': 'cq',
  'ap-guangzhou': 'gz',
  'ap-hongkong': 'hk',
  'ap-jakarta': 'jkt',
  'ap-nanjing': 'nj',
  'ap-seoul': 'kr',
  'ap-shanghai': 'sh',
  'ap-singapore': 'sg',
  'ap-tokyo': 'jp',
  'eu-frankfurt': 'de',
  'na-ashburn': 'use',
  'na-siliconvalley': 'usw',
  'sa-saopaulo': 'sao',
};

/** Plans the labels of a Node. `zone` is that of the instance. */
export function planLabels(
  { instanceType, cores, memoryGib }: Pick<Instance, 'instanceType' | 'cores' | 'memoryGib'>,
  zone: Zone,
  form: ZoneLabelForm,
): NodeLabels {
  const regionName = zone.name.replace(/-\d+$/, '');
  const zoneText = form === 'name' ? zone.name : zone.number;
  const region = form === 'name' ? regionName : (SHORT_REGIONS[regionName] ?? regionName);
  return {
    resources: withoutEmpty({
      [INSTANCE_TYPE_LABEL]: instanceType,
      'beta.kubernetes.io/instance-type': instanceType,
      'node.tke.cloud.tencent.com/cpu': cores === 0 ? '' : String(cores),
      'node.tke.cloud.tencent.com/memory': memoryGib === undefined ? '' : String(memoryGib),
    }),
    wellKnown: withoutEmpty({
      [ZONE_LABEL]: zoneText,
      'failure-domain.beta.kubernetes.io/zone': zoneText,
      'topology.kubernetes.io/region': region,
      'failure-domain.beta.kubernetes.io/region': region,
    }),
    extra: withoutEmpty({ 'topology.com.tencent.cloud.csi.cbs/zone': zone.name }),
  };
}

function withoutEmpty(labels: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(labels).filter(([, value]) => value !== ''));
}
