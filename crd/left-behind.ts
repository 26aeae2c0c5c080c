import { CLOUD_FINALIZER, INGRESS_FINALIZER, SERVICE_FINALIZER } from './names.ts';

/** A kind of objects that hang in deletion once the program that takes their finalizer off is gone. */
type FinalizedKind = { readonly plural: string; readonly finalizer: string; readonly program: 'ipamd' | 'ccm' };

/** Every kind of objects on which a finalizer of ours is put. `docs/uninstall.md` gives up each. */
export const FINALIZED_KINDS: readonly FinalizedKind[] = [
  { plural: 'nodeeniconfigs', finalizer: CLOUD_FINALIZER, program: 'ipamd' },
  { plural: 'vpcipclaims', finalizer: CLOUD_FINALIZER, program: 'ipamd' },
  { plural: 'vpcenis', finalizer: CLOUD_FINALIZER, program: 'ipamd' },
  { plural: 'eipclaims', finalizer: CLOUD_FINALIZER, program: 'ipamd' },
  { plural: 'services', finalizer: SERVICE_FINALIZER, program: 'ccm' },
  { plural: 'ingresses', finalizer: INGRESS_FINALIZER, program: 'ccm' },
];

/** Everything that is made in the cloud, as people call it. `docs/uninstall.md` says of each whose it is and when it goes. */
export const CLOUD_THINGS = [
  'ENIs',
  'addresses of ENIs',
  'EIPs',
  'reserved addresses',
  'load balancers',
  'listeners, rules, redirects and targets',
  'security groups for source ranges',
  'certificates',
  'routes to podCIDRs',
] as const;
