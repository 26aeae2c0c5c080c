import { type Check, done, whenKnown } from './check.ts';

/** Looks whether the kernel is as the agent wants it, thing by thing. */
export const DIFFERENCES_CHECK: Check = {
  id: 'differences',
  looksAt: 'rules, routes, links, addresses, neighbours and settings are as the agent wrote them down',
  finds: [
    'rule-missing',
    'rule-duplicate',
    'rule-wrong-table',
    'rule-stale',
    'route-missing',
    'route-stale',
    'route-wrong-device',
    'blackhole-route',
    'foreign-route',
    'neigh-missing',
    'neigh-wrong-mac',
    'nft-table-missing',
    'nft-table-changed',
    'pod-link-down',
    'pod-address-missing',
    'pod-route-missing',
    'pod-without-lease',
    'address-two-owners',
  ],
  judge: ({ differences }) => whenKnown(differences, (findings) => done(findings, [`${findings.length} differences`])),
};
