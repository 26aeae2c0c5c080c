import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import test from 'ava';
import { parse, stringify } from 'yaml';
import { createTempDir } from '../support/temp-dir.ts';

/** Prometheus' own tool evaluates the rules: `PROMTOOL` names it, or it is on the path (Debian: package prometheus). */
const PROMTOOL = process.env['PROMTOOL'] ?? 'promtool';
const hasPromtool = spawnSync(PROMTOOL, ['--version']).status === 0;
const run = hasPromtool ? test : test.skip;
if (!hasPromtool) process.stderr.write('alerts not evaluated: no promtool on the path, and PROMTOOL names none\n');

const RULES = parse(readFileSync(new URL('../../conf/monitoring/alerts.yaml', import.meta.url), 'utf8')) as {
  readonly spec: object;
};

type Case = {
  readonly alert: string;
  /** How many alerts of the name fire then. */
  readonly fires: number;
  /** Minutes after the start. */
  readonly atMinutes: number;
  readonly when: string;
  /** A value each minute: `0+1x60` is 0, 1 … 60; `_` is none. */
  readonly series: readonly { readonly series: string; readonly values: string }[];
};

const CASES: readonly Case[] = `
TkeEniServiceCidrsUnknown fires 1 at 20m when one of two nodes with exclusive ENIs knows no range of Services
  tke_eni_service_cidrs_unknown{node="a",job="tke-eni-agent"} = 1x60
  tke_eni_service_cidrs_unknown{node="b",job="tke-eni-agent"} = 0x60

TkeEniAgentDown fires 1 at 10m when no agent was ever scraped
  x = 1x60

TkeEniAgentDown fires 1 at 20m when one of three agents is down
  up{job="tke-eni-agent",node="a"} = 1x60
  up{job="tke-eni-agent",node="b"} = 1x60
  up{job="tke-eni-agent",node="c"} = 1x9 0x60

TkeEniAgentDown fires 0 at 14m when an agent is restarted by a rollout
  up{job="tke-eni-agent",node="a"} = 1x9 0x1 1x60

TkeEniAgentRestarts fires 1 at 29m when an agent ends every five minutes
  process_start_time_seconds{job="tke-eni-agent",node="a"} = 0x4 300x4 600x4 900x4 1200x4 1500x4

TkeEniAgentNotReady fires 1 at 10m when one of two agents answers STATUS with 50
  tke_eni_status_code{node="a"} = 50x60
  tke_eni_status_code{node="b"} = 0x60

TkeEniAgentNotReady fires 0 at 12m when an agent takes two minutes to start
  tke_eni_status_code{node="a"} = 0x9 50x1 0x60

TkeEniAddFailing fires 1 at 30m when half of the ADDs fail with code 105
  tke_eni_request_seconds_count{verb="add",code="0",node="a"} = 0+1x60
  tke_eni_request_seconds_count{verb="add",code="105",node="a"} = 0+1x60

TkeEniAddFailing fires 0 at 30m when the pool is empty, which has an alert of its own
  tke_eni_request_seconds_count{verb="add",code="0",node="a"} = 0+1x60
  tke_eni_request_seconds_count{verb="add",code="101",node="a"} = 0+1x60

TkeEniPoolExhausted fires 1 at 20m when ADDs find no address
  tke_eni_request_seconds_count{verb="add",code="101",node="a"} = _x9 1+1x60

TkeEniPodCidrFull fires 1 at 20m when the kubelet repeats the ADD of a Pod on one of two nodes
  tke_eni_pod_cidr_full_total{node="a"} = 0x9 0+2x60
  tke_eni_pod_cidr_full_total{node="b"} = 3x60

TkeEniPodCidrMissing fires 1 at 15m when a node waits for its first podCIDR for some minutes, and another for longer
  tke_eni_pod_cidr_missing{node="a"} = 1x5 0x60
  tke_eni_pod_cidr_missing{node="b"} = 1x60

TkeEniZoneNearlyFull fires 2 at 20m when one of three zones has addresses for four more nodes, and one has no subnet; a former leader shows none
  tke_eni_ipamd_zone_nodes_left{zone="ap-guangzhou-3",node="a"} = 4x60
  tke_eni_ipamd_zone_nodes_left{zone="ap-guangzhou-4",node="a"} = 5x60
  tke_eni_ipamd_zone_nodes_left{zone="ap-guangzhou-6",node="a"} = 0x60
  tke_eni_ipamd_zone_nodes_left{zone="ap-guangzhou-4",node="b"} = 0x5 _x55

TkeEniZoneNearlyFull fires 0 at 15m when the cloud reported the only subnet as full for some minutes
  tke_eni_ipamd_zone_nodes_left{zone="ap-guangzhou-3",node="a"} = 40x9 0x5 40x45

TkeEniClusterCidrNearlyFull fires 1 at 20m when 4 of 48 blocks are free; the leader alone shows them
  tke_eni_ipamd_pod_cidr_blocks{state="used",node="a"} = 43x60
  tke_eni_ipamd_pod_cidr_blocks{state="held",node="a"} = 1x60
  tke_eni_ipamd_pod_cidr_blocks{state="free",node="a"} = 4x60
  tke_eni_ipamd_pod_cidr_blocks{state="reserved",node="a"} = 16x60

TkeEniClusterCidrNearlyFull fires 0 at 20m when 5 of 48 blocks are free
  tke_eni_ipamd_pod_cidr_blocks{state="used",node="a"} = 43x60
  tke_eni_ipamd_pod_cidr_blocks{state="held",node="a"} = 0x60
  tke_eni_ipamd_pod_cidr_blocks{state="free",node="a"} = 5x60

TkeEniPodCidrConflict fires 1 at 3m when another allocator gave a Node its podCIDR, and both replicas show it
  tke_eni_ipamd_problem{kind="CIDRAllocatorConflict",name="n1",node="a"} = 1x60
  tke_eni_ipamd_problem{kind="CIDRAllocatorConflict",name="n1",node="b"} = 1x60

TkeEniPodCidrConflict fires 0 at 20m when a Node has no block
  tke_eni_ipamd_problem{kind="CIDRNotAvailable",name="n1",node="a"} = 1x60

TkeEniRoutesMissing fires 1 at 20m when the cloud refuses one route, and all others are right
  tke_eni_ipamd_cluster_routes{state="right",node="a"} = 47x60
  tke_eni_ipamd_cluster_routes{state="missing",node="a"} = 1x60
  tke_eni_ipamd_cluster_routes{state="wrong",node="a"} = 0x60

TkeEniRoutesMissing fires 1 at 30m when the list of routes cannot be read
  tke_eni_ipamd_cluster_route_list_failures_total{node="a"} = 0x9 0+1x60

TkeEniRoutesMissing fires 0 at 20m when nodes come, and routes of nodes that are gone are held
  tke_eni_ipamd_cluster_routes{state="missing",node="a"} = 1 0 0 1 0x60
  tke_eni_ipamd_cluster_routes{state="held",node="a"} = 5x60

TkeEniControllerManagerRoutesMissing fires 1 at 20m when a route is in the way of one Node
  tke_cloud_controller_manager_cluster_routes{state="right",node="a"} = 47x60
  tke_cloud_controller_manager_cluster_routes{state="faulty",node="a"} = 1x60

TkeEniControllerManagerRoutesMissing fires 1 at 30m when a route table that is named does not exist
  tke_cloud_controller_manager_cluster_route_list_failures_total{node="a"} = 0x9 0+1x60

TkeEniControllerManagerRoutesMissing fires 0 at 20m when nodes come, and routes of nodes that are gone are held
  tke_cloud_controller_manager_cluster_routes{state="missing",node="a"} = 1 0 0 1 0x60
  tke_cloud_controller_manager_cluster_routes{state="held",node="a"} = 5x60

TkeEniLoadBalancersKeptByOther fires 1 at 20m when TKE's controller is at work
  tke_cloud_controller_manager_problem{kind="LoadBalancersKeptByOther",name="tke-service-controller",node="a"} = 1x60

TkeEniOrphanLoadBalancers fires 0 at 110m when one is deleted by the next sweep
  tke_cloud_controller_manager_orphan_load_balancers{node="a"} = 0x9 1x60 0x60

TkeEniIngressCertificateExpires fires 1 at 45m when a certificate has four days left
  tke_cloud_controller_manager_certificate_expiry_timestamp_seconds = 345600x60

TkeEniIngressCertificateExpires fires 0 at 45m when a certificate has eight days left, and another replica has none
  tke_cloud_controller_manager_certificate_expiry_timestamp_seconds{pod="a"} = 691200x60
  tke_cloud_controller_manager_certificate_expiry_timestamp_seconds{pod="b"} = 0x60

TkeEniIngressProblems fires 1 at 30m when a certificate is refused, and a redirect clashes
  tke_cloud_controller_manager_ingress_problems{reason="CertificateRefused"} = 1x60
  tke_cloud_controller_manager_ingress_problems{reason="RuleClash"} = 1x60

TkeEniIngressProblems fires 0 at 12m when a new Ingress has no backends for a minute
  tke_cloud_controller_manager_ingress_problems{reason="UnAvailableLoadBalancer"} = 0x9 1x1 0x60

TkeEniLoadBalancerDrift fires 1 at 20m when a weight that a person set is left
  tke_cloud_controller_manager_load_balancer_drifts{field="weight",node="a"} = 1x60

TkeEniLoadBalancerDrift fires 0 at 20m when a person changed a listener once
  tke_cloud_controller_manager_load_balancer_drifts_repaired_total{field="scheduler",node="a"} = 0x9 1x60

TkeEniSpoolNotDrained fires 0 at 17m when the spool is emptied now and then
  tke_eni_spool_pending{node="a"} = 1x8 0 1x8 0 1x40

TkeEniApiServerSilent fires 1 at 5m when the API server was never heard of
  tke_eni_api_server_silence_seconds{node="a"} = inf inf inf inf inf inf

TkeEniRepairFight fires 1 at 25m when somebody undoes repairs every few minutes
  tke_eni_fights{node="a"} = 1 0x4 1 0x4 1 0x4 1 0x4 1 0x4 1 0x4

TkeEniDevicePluginNotRegistered fires 1 at 30m when kubelet refuses
  tke_eni_device_plugin_registrations_total{outcome="refused",node="a"} = 0+6x60

TkeEniDevicePluginNotRegistered fires 0 at 17m when kubelet was away for a while and took it then
  tke_eni_device_plugin_registrations_total{outcome="unreachable",node="a"} = 0x9 0+6x5 36x60
  tke_eni_device_plugin_registrations_total{outcome="registered",node="a"} = 1x15 2x60

TkeEniIpamdNoLeader fires 1 at 5m when both replicas stand by
  tke_eni_ipamd_leader{node="a"} = 0x60
  tke_eni_ipamd_leader{node="b"} = 0x60

TkeEniIpamdTwoLeaders fires 0 at 5m when one leads and one stands by
  tke_eni_ipamd_leader{node="a"} = 1x60
  tke_eni_ipamd_leader{node="b"} = 0x60

TkeEniIpamdTwoLeaders fires 1 at 5m when both lead
  tke_eni_ipamd_leader{node="a"} = 1x60
  tke_eni_ipamd_leader{node="b"} = 1x60

TkeEniNodeReleaseHeld fires 1 at 10m when the leader holds nodes, and the other replica holds none
  tke_eni_ipamd_release_held_nodes{reason="NoNodes",node="a"} = 30x60

TkeEniNodesHeld fires 1 at 20m when two replicas count the same nodes, and others are merely under way
  tke_eni_ipamd_nodes{ready="False",reason="SubnetExhausted",node="a"} = 3x60
  tke_eni_ipamd_nodes{ready="False",reason="SubnetExhausted",node="b"} = 3x60
  tke_eni_ipamd_nodes{ready="False",reason="CallUnderWay",node="a"} = 9x60
  tke_eni_ipamd_nodes{ready="True",reason="SupplyMet",node="a"} = 90x60

TkeEniObjectsMended fires 1 at 35m when it happened once, and there was no such series before
  tke_eni_ipamd_node_objects_mended_total{kind="drift"} = _x29 1x60

TkeEniObjectsMended fires 0 at 50m when it was long ago
  tke_eni_ipamd_node_objects_mended_total{kind="drift"} = _x29 1x60

TkeEniAuditMissing fires 1 at 110m when sweeps fail
  tke_eni_ipamd_leader{node="a"} = 1x120
  tke_eni_ipamd_audits_total{outcome="SweepFailed"} = 0+1x120
  tke_eni_ipamd_audits_total{outcome="done"} = 7x120

TkeEniAuditMissing fires 0 at 110m when one of twelve sweeps goes well
  tke_eni_ipamd_leader{node="a"} = 1x120
  tke_eni_ipamd_audits_total{outcome="done"} = 0x59 1x59 2x59

TkeEniCloudErrors fires 1 at 40m when an API fails half of the time
  tke_eni_ipamd_cloud_calls_total{action="AssignPrivateIpAddresses",code="ok"} = 0+5x60
  tke_eni_ipamd_cloud_calls_total{action="AssignPrivateIpAddresses",code="InternalError"} = 0+5x60

TkeEniCloudErrors fires 0 at 40m when the cloud only throttles
  tke_eni_ipamd_cloud_calls_total{action="AssignPrivateIpAddresses",code="ok"} = 0+5x60
  tke_eni_ipamd_cloud_calls_total{action="AssignPrivateIpAddresses",code="RequestLimitExceeded"} = 0+5x60

TkeEniClaimsWaiting fires 1 at 30m when a Pod waits for its address for half an hour, and another waits for a node
  tke_eni_ipamd_claims{reason="AddressElsewhere",node="a"} = 1x60
  tke_eni_ipamd_claims{reason="PodUnscheduled",node="a"} = 1x60
  tke_eni_ipamd_claims{reason="AddressBound",node="a"} = 40x60

TkeEniClaimsWaiting fires 0 at 32m when Pods move for some minutes now and then
  tke_eni_ipamd_claims{reason="HandOver",node="a"} = 1x9 0 1x9 0 1x9 0 1x30

TkeEniAddressTaken fires 1 at 10m when somebody has one of two addresses
  tke_eni_ipamd_claims{reason="AddressTaken",node="a"} = 1x60
  tke_eni_ipamd_leader{node="b"} = 0x60

TkeEniClaimsDiffer fires 0 at 80m when what a look found is gone with the next one
  tke_eni_ipamd_claim_differences{kind="in-cloud-only",node="a"} = 1x29 _x60

TkeEniClaimsDiffer fires 1 at 90m when differences stay
  tke_eni_ipamd_claim_differences{kind="in-cloud-only",node="a"} = 1x120

TkeEniEipFailing fires 1 at 45m when the quota of EIPs is used up, and it is tried every ten minutes
  tke_eni_ipamd_cloud_calls_total{action="AllocateAddresses",code="AddressQuotaLimitExceeded"} = 1x9 2x9 3x9 4x9 5x9 6x9 7x9
  tke_eni_ipamd_cloud_calls_total{action="AllocateAddresses",code="ok"} = 7x60

TkeEniEipFailing fires 0 at 30m when the cloud throttles, and one Pod is refused once
  tke_eni_ipamd_cloud_calls_total{action="AllocateAddresses",code="RequestLimitExceeded"} = 0+3x60
  tke_eni_ipamd_cloud_calls_total{action="AssociateAddress",code="InvalidAddressState"} = _x20 1x60

TkeEniSchedulerNoLeader fires 1 at 5m when both replicas stand by
  tke_eni_ip_scheduler_leading{node="a"} = 0x60
  tke_eni_ip_scheduler_leading{node="b"} = 0x60

TkeEniSchedulerNoLeader fires 1 at 80m when none is there any more
  tke_eni_ip_scheduler_leading{node="a"} = 1x60 _x60

TkeEniSchedulerNoLeader fires 0 at 80m when one leads and one stands by
  tke_eni_ip_scheduler_leading{node="a"} = 1x90
  tke_eni_ip_scheduler_leading{node="b"} = 0x90

TkeEniSchedulerNoLeader fires 0 at 80m when it is not installed
  x = 1x90

TkeEniSchedulerRefusing fires 1 at 30m when bindings fail
  tke_eni_ip_scheduler_requests_total{verb="bind",outcome="internal",node="a"} = 0+1x60

TkeEniSchedulerRefusing fires 0 at 30m when a standby is asked, and requests are given up
  tke_eni_ip_scheduler_requests_total{verb="filter",outcome="STANDBY",node="b"} = 0+9x60
  tke_eni_ip_scheduler_requests_total{verb="filter",outcome="gone",node="a"} = 0+9x60

TkeEniWebhookFailing fires 1 at 22m when a review could not be answered now and then
  tke_eni_ip_webhook_requests_total{outcome="failed",node="a"} = 1x9 2x4 3x4 4x4 5x4 6x60

TkeEniWebhookFailing fires 0 at 30m when Pods are changed and left as they are
  tke_eni_ip_webhook_requests_total{outcome="patched",node="a"} = 0+9x60
  tke_eni_ip_webhook_requests_total{outcome="unchanged",node="a"} = 0+9x60

TkeEniCertificate fires 1 at 20m when the certificate of one of two replicas ends in six days
  tke_eni_ip_webhook_certificate_expiry_seconds{node="a"} = 518400x60
  tke_eni_ip_webhook_certificate_expiry_seconds{node="b"} = 31536000x60
  tke_eni_ip_webhook_certificate_problem{node="a"} = 0x60

TkeEniCertificate fires 0 at 20m when the files are replaced one after the other
  tke_eni_ip_webhook_certificate_expiry_seconds{node="a"} = 31536000x60
  tke_eni_ip_webhook_certificate_problem{node="a"} = 0x9 1x2 0x60

TkeEniCertificate fires 1 at 20m when that of the extender has ended, and that of the webhook has not
  tke_eni_ip_scheduler_certificate_expiry_seconds{job="tke-eni-ip-scheduler",node="a"} = 60x60
  tke_eni_ip_webhook_certificate_expiry_seconds{job="tke-eni-ip-webhook",node="a"} = 31536000x60

TkeEniControllerManagerDown fires 1 at 20m when one of two replicas is not scraped
  up{job="tke-cloud-controller-manager",node="a"} = 1x5 0x60
  up{job="tke-cloud-controller-manager",node="b"} = 1x60

TkeEniControllerManagerNoLeader fires 1 at 10m when neither of two replicas leads
  tke_cloud_controller_manager_leader{node="a"} = 1x5 0x60
  tke_cloud_controller_manager_leader{node="b"} = 0x60

TkeEniControllerManagerNoLeader fires 0 at 10m when it was never installed
  up{job="tke-eni-ipamd",node="a"} = 1x60

TkeEniControllerManagerTwoLeaders fires 1 at 10m when both lead by locks of different kinds
  tke_cloud_controller_manager_leader{node="a"} = 1x60
  tke_cloud_controller_manager_leader{node="b"} = 0x5 1x60

TkeEniControllerManagerRefused fires 1 at 10m when a controller may not delete Nodes
  tke_cloud_controller_manager_problem{kind="Forbidden",name="cloud-node-lifecycle-controller: delete nodes"} = 1x60

TkeEniWebhookRules fires 1 at 25m when its right to read them was taken away
  tke_eni_ip_webhook_static_ip_configs_followed{node="a"} = 1x9 0x60
`
  .trim()
  .split('\n\n')
  .map((text) => {
    const [head = '', ...lines] = text.split('\n');
    const [, alert = '', fires, atMinutes, when = ''] = /^(\w+) fires (\d+) at (\d+)m when (.*)$/.exec(head) ?? [];
    const series = lines
      .map((line) => line.trim().split(' = '))
      .map(([name = '', values = '']) => ({ series: name, values }));
    return { alert, fires: Number(fires), atMinutes: Number(atMinutes), when, series };
  });

for (const { alert, when, series, atMinutes, fires } of CASES) {
  run(`${alert}: ${fires === 0 ? 'is silent' : 'fires'} when ${when}`, (t) => {
    const folder = createTempDir('alerts');
    try {
      writeFileSync(folder.join('rules.yaml'), stringify(RULES.spec));
      const expr = `count(ALERTS{alertname="${alert}",alertstate="firing"}) or vector(0)`;
      const wanted = { expr, eval_time: `${atMinutes}m`, exp_samples: [{ value: fires }] };
      const rulesTest = {
        rule_files: ['rules.yaml'],
        evaluation_interval: '1m',
        tests: [{ interval: '1m', input_series: series, promql_expr_test: [wanted] }],
      };
      writeFileSync(folder.join('test.yaml'), stringify(rulesTest));
      const { status, stdout, stderr } = spawnSync(PROMTOOL, ['test', 'rules', folder.join('test.yaml')], {
        encoding: 'utf8',
      });
      t.is(status, 0, `${stdout}${stderr}`);
    } finally {
      folder.close();
    }
  });
}
