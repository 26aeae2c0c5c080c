import type { IpamdConfig } from '../config/options.ts';

/** The flags that nodes depend on. */
export type NodeSettingsFlags = Pick<
  IpamdConfig,
  | 'ipMinWarmTarget'
  | 'ipMaxWarmTarget'
  | 'eniMinWarmTarget'
  | 'eniMaxWarmTarget'
  | 'enableDirectEni'
  | 'enableStaticIp'
  | 'enableSecurityGroups'
  | 'securityGroups'
  | 'onlyNominatedEniSubnets'
  | 'enableNodeCondition'
  | 'enableNodeTaint'
  | 'startupTaints'
  | 'nodeReleaseGraceMs'
  | 'nodeReleasePercent'
  | 'allocateNodeCidrs'
  | 'defaultNetwork'
>;
