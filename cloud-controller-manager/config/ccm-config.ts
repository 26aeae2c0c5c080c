import { checkCloudSettings } from '../../cloud/tencent/cloud-options.ts';
import { checkClientRate } from '../../kube/connection-options.ts';
import { RENEW_DEADLINE_SHARE } from '../../kube/election/election-settings.ts';
import type { Faults } from '../../runtime/decode.ts';
import { readSettings, type SettingsInput, type SettingsOutcome } from '../../runtime/settings/read-settings.ts';
import { CCM_PROGRAM, type CcmConfig } from './options.ts';

/**
 * Reads the settings from `input`; only its `readFile` does I/O.
 * @throws ConfigError with every fault of flags, variables and file; exit with `EX_CONFIG` then.
 */
export function readCcmConfig(input: SettingsInput): SettingsOutcome<CcmConfig> {
  return readSettings(CCM_PROGRAM, input, checkTogether);
}

function checkTogether(config: CcmConfig, faults: Faults): void {
  if (config.controllers.size === 0) faults.add('--controllers', 'at least one controller', 'none');
  checkCloudSettings(config, faults);
  checkRoutes(config, faults);
  if (config.loadBalancers !== 'none' && config.clusterId === '') {
    faults.add('--clusterid', 'the id of the cluster, as --load-balancers tells its load balancers by it', '');
  }
  checkIngresses(config, faults);
  checkClientRate(config, faults, 'kube-api');
  const longestRetryMs = (config.leaderElectLeaseMs * RENEW_DEADLINE_SHARE) / RENEWALS;
  if (config.leaderElectRetryMs <= longestRetryMs) return;
  const expected = `at most three eighths of --leader-elect-lease-duration, ${longestRetryMs} ms`;
  faults.add('--leader-elect-retry-period', expected, config.leaderElectRetryMs);
}

function checkIngresses({ ingress, loadBalancers, servesWithoutClass }: CcmConfig, faults: Faults): void {
  if (ingress === 'none' && servesWithoutClass)
    faults.add('--ingress-without-class', 'false, as with --ingress=none no Ingress is served', 'true');
  if (ingress !== 'none' && loadBalancers === 'none')
    faults.add('--load-balancers', 'clb, as the load balancers of Ingresses are kept with those of Services', 'none');
}

function checkRoutes(
  { routes, clusterCidrs, clusterId, routeTables, clusterRouteTable }: CcmConfig,
  faults: Faults,
): void {
  if (routes !== 'table' && routeTables.length > 0) {
    faults.add(
      '--route-tables',
      `none, as with --routes=${routes} no route table of the VPC is written`,
      routeTables.join(),
    );
  }
  if (routes !== 'cluster' && clusterRouteTable !== '') {
    faults.add(
      '--cluster-route-table',
      `none, as with --routes=${routes} the TKE API is not called`,
      clusterRouteTable,
    );
  }
  if (routes === 'none') return;
  if (clusterCidrs.length === 0) {
    faults.add(
      '--cluster-cidr',
      `the networks of Pods, as --routes=${routes} makes and deletes routes in no other`,
      '',
    );
  }
  if (routes === 'table' && routeTables.length === 0) {
    faults.add('--route-tables', 'the route tables of the subnets, as --routes=table keeps the routes in them', '');
  }
  if (clusterId === '') {
    faults.add('--clusterid', `the id of the cluster, as --routes=${routes} tells its routes by it`, '');
  }
}

/** A renewal and one retry have to fit into the time for which the leader trusts its lease. */
const RENEWALS = 2;
