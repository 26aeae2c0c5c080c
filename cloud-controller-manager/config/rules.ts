import { CLOUD_RULE } from '../../cloud/tencent/cloud-options.ts';
import { clientRateRule } from '../../kube/connection-options.ts';
import { RENEW_DEADLINE } from '../../kube/election/election-settings.ts';
import { isEmpty, isSet, type Rule, refused } from '../../runtime/settings/rule.ts';

const WITH_ROUTES = { flag: 'routes', isNot: ['none'] } as const;

/** Combinations of settings that the cloud controller manager refuses. */
export const CCM_RULES: readonly Rule[] = [
  CLOUD_RULE,
  // The chart looks at the items as they are: it takes * with each controller switched off, which the program refuses.
  refused('controllers', 'at least one controller that runs: with -NAME alone none does, add *', {
    flag: 'controllers',
    hasNoItem: '^[^-]',
  }),
  refused(
    'route-tables',
    'none, as with --routes={routes} no route table of the VPC is written',
    { flag: 'routes', isNot: ['table'] },
    isSet('route-tables'),
  ),
  refused(
    'cluster-route-table',
    'none, as with --routes={routes} the TKE API is not called',
    { flag: 'routes', isNot: ['cluster'] },
    isSet('cluster-route-table'),
  ),
  refused(
    'cluster-cidr',
    'the networks of Pods, as --routes={routes} makes and deletes routes in no other',
    WITH_ROUTES,
    isEmpty('cluster-cidr'),
  ),
  refused(
    'route-tables',
    'the route tables of the subnets, as --routes=table keeps the routes in them',
    { flag: 'routes', is: ['table'] },
    isEmpty('route-tables'),
  ),
  refused(
    'clusterid',
    'the id of the cluster, as --routes={routes} tells its routes by it',
    WITH_ROUTES,
    isEmpty('clusterid'),
  ),
  refused(
    'clusterid',
    'the id of the cluster, as --load-balancers tells its load balancers by it',
    { flag: 'load-balancers', isNot: ['none'] },
    isEmpty('clusterid'),
  ),
  refused(
    'ingress-without-class',
    'false, as with --ingress=none no Ingress is served',
    { flag: 'ingress', is: ['none'] },
    { flag: 'ingress-without-class', is: ['true'] },
  ),
  refused(
    'load-balancers',
    'clb, as the load balancers of Ingresses are kept with those of Services',
    { flag: 'ingress', isNot: ['none'] },
    { flag: 'load-balancers', is: ['none'] },
  ),
  clientRateRule('kube-api'),
  // A renewal and one retry, which take as long here, have to fit into the part of its lease for which the leader trusts it.
  refused('leader-elect-retry-period', 'at most three eighths of --leader-elect-lease-duration, {limit} ms', {
    sum: ['leader-elect-retry-period'],
    above: 'leader-elect-lease-duration',
    of: [RENEW_DEADLINE[0], 2 * RENEW_DEADLINE[1]],
  }),
];
