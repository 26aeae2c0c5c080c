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
  readonly when: string;
  /** Series by name, a value each minute: `0+1x60` is 0, 1 … 60; `_` is none. */
  readonly series: Readonly<Record<string, string>>;
  /** Minutes after the start. */
  readonly atMinutes: number;
  /** How many alerts of the name fire then. */
  readonly fires: number;
};

const CASES: readonly Case[] = [
  {
    alert: 'TkeEniServiceCidrsUnknown',
    when: 'one of two nodes with exclusive ENIs knows no range of Services',
    series: {
      'tke_eni_service_cidrs_unknown{node="a",job="tke-eni-agent"}': '1x60',
      'tke_eni_service_cidrs_unknown{node="b",job="tke-eni-agent"}': '0x60',
    },
    atMinutes: 20,
    fires: 1,
  },
  { alert: 'TkeEniAgentDown', when: 'no agent was ever scraped', series: { x: '1x60' }, atMinutes: 10, fires: 1 },
  {
    alert: 'TkeEniAgentDown',
    when: 'one of three agents is down',
    series: {
      'up{job="tke-eni-agent",node="a"}': '1x60',
      'up{job="tke-eni-agent",node="b"}': '1x60',
      'up{job="tke-eni-agent",node="c"}': '1x9 0x60',
    },
    atMinutes: 20,
    fires: 1,
  },
  {
    alert: 'TkeEniAgentDown',
    when: 'an agent is restarted by a rollout',
    series: { 'up{job="tke-eni-agent",node="a"}': '1x9 0x1 1x60' },
    atMinutes: 14,
    fires: 0,
  },
  {
    alert: 'TkeEniAgentRestarts',
    when: 'an agent ends every five minutes',
    series: { 'process_start_time_seconds{job="tke-eni-agent",node="a"}': '0x4 300x4 600x4 900x4 1200x4 1500x4' },
    atMinutes: 29,
    fires: 1,
  },
  {
    alert: 'TkeEniAgentNotReady',
    when: 'one of two agents answers STATUS with 50',
    series: { 'tke_eni_status_code{node="a"}': '50x60', 'tke_eni_status_code{node="b"}': '0x60' },
    atMinutes: 10,
    fires: 1,
  },
  {
    alert: 'TkeEniAgentNotReady',
    when: 'an agent takes two minutes to start',
    series: { 'tke_eni_status_code{node="a"}': '0x9 50x1 0x60' },
    atMinutes: 12,
    fires: 0,
  },
  {
    alert: 'TkeEniAddFailing',
    when: 'half of the ADDs fail with code 105',
    series: {
      'tke_eni_request_seconds_count{verb="add",code="0",node="a"}': '0+1x60',
      'tke_eni_request_seconds_count{verb="add",code="105",node="a"}': '0+1x60',
    },
    atMinutes: 30,
    fires: 1,
  },
  {
    alert: 'TkeEniAddFailing',
    when: 'the pool is empty, which has an alert of its own',
    series: {
      'tke_eni_request_seconds_count{verb="add",code="0",node="a"}': '0+1x60',
      'tke_eni_request_seconds_count{verb="add",code="101",node="a"}': '0+1x60',
    },
    atMinutes: 30,
    fires: 0,
  },
  {
    alert: 'TkeEniPoolExhausted',
    when: 'ADDs find no address',
    series: { 'tke_eni_request_seconds_count{verb="add",code="101",node="a"}': '_x9 1+1x60' },
    atMinutes: 20,
    fires: 1,
  },
  {
    alert: 'TkeEniPodCidrFull',
    when: 'the kubelet repeats the ADD of a Pod on one of two nodes',
    series: {
      'tke_eni_pod_cidr_full_total{node="a"}': '0x9 0+2x60',
      'tke_eni_pod_cidr_full_total{node="b"}': '3x60',
    },
    atMinutes: 20,
    fires: 1,
  },
  {
    alert: 'TkeEniPodCidrMissing',
    when: 'a node waits for its first podCIDR for some minutes, and another for longer',
    series: { 'tke_eni_pod_cidr_missing{node="a"}': '1x5 0x60', 'tke_eni_pod_cidr_missing{node="b"}': '1x60' },
    atMinutes: 15,
    fires: 1,
  },
  {
    alert: 'TkeEniZoneNearlyFull',
    when: 'one of three zones has addresses for four more nodes, and one has no subnet; a former leader shows none',
    series: {
      'tke_eni_ipamd_zone_nodes_left{zone="ap-guangzhou-3",node="a"}': '4x60',
      'tke_eni_ipamd_zone_nodes_left{zone="ap-guangzhou-4",node="a"}': '5x60',
      'tke_eni_ipamd_zone_nodes_left{zone="ap-guangzhou-6",node="a"}': '0x60',
      'tke_eni_ipamd_zone_nodes_left{zone="ap-guangzhou-4",node="b"}': '0x5 _x55',
    },
    atMinutes: 20,
    fires: 2,
  },
  {
    alert: 'TkeEniZoneNearlyFull',
    when: 'the cloud reported the only subnet as full for some minutes',
    series: { 'tke_eni_ipamd_zone_nodes_left{zone="ap-guangzhou-3",node="a"}': '40x9 0x5 40x45' },
    atMinutes: 15,
    fires: 0,
  },
  {
    alert: 'TkeEniClusterCidrNearlyFull',
    when: '4 of 48 blocks are free; the leader alone shows them',
    series: {
      'tke_eni_ipamd_pod_cidr_blocks{state="used",node="a"}': '43x60',
      'tke_eni_ipamd_pod_cidr_blocks{state="held",node="a"}': '1x60',
      'tke_eni_ipamd_pod_cidr_blocks{state="free",node="a"}': '4x60',
      'tke_eni_ipamd_pod_cidr_blocks{state="reserved",node="a"}': '16x60',
    },
    atMinutes: 20,
    fires: 1,
  },
  {
    alert: 'TkeEniClusterCidrNearlyFull',
    when: '5 of 48 blocks are free',
    series: {
      'tke_eni_ipamd_pod_cidr_blocks{state="used",node="a"}': '43x60',
      'tke_eni_ipamd_pod_cidr_blocks{state="held",node="a"}': '0x60',
      'tke_eni_ipamd_pod_cidr_blocks{state="free",node="a"}': '5x60',
    },
    atMinutes: 20,
    fires: 0,
  },
  {
    alert: 'TkeEniPodCidrConflict',
    when: 'another allocator gave a Node its podCIDR, and both replicas show it',
    series: {
      'tke_eni_ipamd_problem{kind="CIDRAllocatorConflict",name="n1",node="a"}': '1x60',
      'tke_eni_ipamd_problem{kind="CIDRAllocatorConflict",name="n1",node="b"}': '1x60',
    },
    atMinutes: 3,
    fires: 1,
  },
  {
    alert: 'TkeEniPodCidrConflict',
    when: 'a Node has no block',
    series: { 'tke_eni_ipamd_problem{kind="CIDRNotAvailable",name="n1",node="a"}': '1x60' },
    atMinutes: 20,
    fires: 0,
  },
  {
    alert: 'TkeEniRoutesMissing',
    when: 'the cloud refuses one route, and all others are right',
    series: {
      'tke_eni_ipamd_cluster_routes{state="right",node="a"}': '47x60',
      'tke_eni_ipamd_cluster_routes{state="missing",node="a"}': '1x60',
      'tke_eni_ipamd_cluster_routes{state="wrong",node="a"}': '0x60',
    },
    atMinutes: 20,
    fires: 1,
  },
  {
    alert: 'TkeEniRoutesMissing',
    when: 'the list of routes cannot be read',
    series: { 'tke_eni_ipamd_cluster_route_list_failures_total{node="a"}': '0x9 0+1x60' },
    atMinutes: 30,
    fires: 1,
  },
  {
    alert: 'TkeEniRoutesMissing',
    when: 'nodes come, and routes of nodes that are gone are held',
    series: {
      'tke_eni_ipamd_cluster_routes{state="missing",node="a"}': '1 0 0 1 0x60',
      'tke_eni_ipamd_cluster_routes{state="held",node="a"}': '5x60',
    },
    atMinutes: 20,
    fires: 0,
  },
  {
    alert: 'TkeEniControllerManagerRoutesMissing',
    when: 'a route is in the way of one Node',
    series: {
      'tke_cloud_controller_manager_cluster_routes{state="right",node="a"}': '47x60',
      'tke_cloud_controller_manager_cluster_routes{state="faulty",node="a"}': '1x60',
    },
    atMinutes: 20,
    fires: 1,
  },
  {
    alert: 'TkeEniControllerManagerRoutesMissing',
    when: 'a route table that is named does not exist',
    series: { 'tke_cloud_controller_manager_cluster_route_list_failures_total{node="a"}': '0x9 0+1x60' },
    atMinutes: 30,
    fires: 1,
  },
  {
    alert: 'TkeEniControllerManagerRoutesMissing',
    when: 'nodes come, and routes of nodes that are gone are held',
    series: {
      'tke_cloud_controller_manager_cluster_routes{state="missing",node="a"}': '1 0 0 1 0x60',
      'tke_cloud_controller_manager_cluster_routes{state="held",node="a"}': '5x60',
    },
    atMinutes: 20,
    fires: 0,
  },
  {
    alert: 'TkeEniLoadBalancersKeptByOther',
    when: "TKE's controller is at work",
    series: {
      'tke_cloud_controller_manager_problem{kind="LoadBalancersKeptByOther",name="tke-service-controller",node="a"}':
        '1x60',
    },
    atMinutes: 20,
    fires: 1,
  },
  {
    alert: 'TkeEniOrphanLoadBalancers',
    when: 'one is deleted by the next sweep',
    series: { 'tke_cloud_controller_manager_orphan_load_balancers{node="a"}': '0x9 1x60 0x60' },
    atMinutes: 110,
    fires: 0,
  },
  {
    alert: 'TkeEniIngressCertificateExpires',
    when: 'a certificate has four days left',
    series: { tke_cloud_controller_manager_certificate_expiry_timestamp_seconds: '345600x60' },
    atMinutes: 45,
    fires: 1,
  },
  {
    alert: 'TkeEniIngressCertificateExpires',
    when: 'a certificate has eight days left, and another replica has none',
    series: {
      'tke_cloud_controller_manager_certificate_expiry_timestamp_seconds{pod="a"}': '691200x60',
      'tke_cloud_controller_manager_certificate_expiry_timestamp_seconds{pod="b"}': '0x60',
    },
    atMinutes: 45,
    fires: 0,
  },
  {
    alert: 'TkeEniIngressProblems',
    when: 'a certificate is refused, and a redirect clashes',
    series: {
      'tke_cloud_controller_manager_ingress_problems{reason="CertificateRefused"}': '1x60',
      'tke_cloud_controller_manager_ingress_problems{reason="RuleClash"}': '1x60',
    },
    atMinutes: 30,
    fires: 1,
  },
  {
    alert: 'TkeEniIngressProblems',
    when: 'a new Ingress has no backends for a minute',
    series: { 'tke_cloud_controller_manager_ingress_problems{reason="UnAvailableLoadBalancer"}': '0x9 1x1 0x60' },
    atMinutes: 12,
    fires: 0,
  },
  {
    alert: 'TkeEniLoadBalancerDrift',
    when: 'a weight that a person set is left',
    series: { 'tke_cloud_controller_manager_load_balancer_drifts{field="weight",node="a"}': '1x60' },
    atMinutes: 20,
    fires: 1,
  },
  {
    alert: 'TkeEniLoadBalancerDrift',
    when: 'a person changed a listener once',
    series: {
      'tke_cloud_controller_manager_load_balancer_drifts_repaired_total{field="scheduler",node="a"}': '0x9 1x60',
    },
    atMinutes: 20,
    fires: 0,
  },
  {
    alert: 'TkeEniSpoolNotDrained',
    when: 'the spool is emptied now and then',
    series: { 'tke_eni_spool_pending{node="a"}': '1x8 0 1x8 0 1x40' },
    atMinutes: 17,
    fires: 0,
  },
  {
    alert: 'TkeEniApiServerSilent',
    when: 'the API server was never heard of',
    series: { 'tke_eni_api_server_silence_seconds{node="a"}': 'inf inf inf inf inf inf' },
    atMinutes: 5,
    fires: 1,
  },
  {
    alert: 'TkeEniRepairFight',
    when: 'somebody undoes repairs every few minutes',
    series: { 'tke_eni_fights{node="a"}': '1 0x4 1 0x4 1 0x4 1 0x4 1 0x4 1 0x4' },
    atMinutes: 25,
    fires: 1,
  },
  {
    alert: 'TkeEniDevicePluginNotRegistered',
    when: 'kubelet refuses',
    series: { 'tke_eni_device_plugin_registrations_total{outcome="refused",node="a"}': '0+6x60' },
    atMinutes: 30,
    fires: 1,
  },
  {
    alert: 'TkeEniDevicePluginNotRegistered',
    when: 'kubelet was away for a while and took it then',
    series: {
      'tke_eni_device_plugin_registrations_total{outcome="unreachable",node="a"}': '0x9 0+6x5 36x60',
      'tke_eni_device_plugin_registrations_total{outcome="registered",node="a"}': '1x15 2x60',
    },
    atMinutes: 17,
    fires: 0,
  },
  {
    alert: 'TkeEniIpamdNoLeader',
    when: 'both replicas stand by',
    series: { 'tke_eni_ipamd_leader{node="a"}': '0x60', 'tke_eni_ipamd_leader{node="b"}': '0x60' },
    atMinutes: 5,
    fires: 1,
  },
  {
    alert: 'TkeEniIpamdTwoLeaders',
    when: 'one leads and one stands by',
    series: { 'tke_eni_ipamd_leader{node="a"}': '1x60', 'tke_eni_ipamd_leader{node="b"}': '0x60' },
    atMinutes: 5,
    fires: 0,
  },
  {
    alert: 'TkeEniIpamdTwoLeaders',
    when: 'both lead',
    series: { 'tke_eni_ipamd_leader{node="a"}': '1x60', 'tke_eni_ipamd_leader{node="b"}': '1x60' },
    atMinutes: 5,
    fires: 1,
  },
  {
    alert: 'TkeEniNodeReleaseHeld',
    when: 'the leader holds nodes, and the other replica holds none',
    series: { 'tke_eni_ipamd_release_held_nodes{reason="NoNodes",node="a"}': '30x60' },
    atMinutes: 10,
    fires: 1,
  },
  {
    alert: 'TkeEniNodesHeld',
    when: 'two replicas count the same nodes, and others are merely under way',
    series: {
      'tke_eni_ipamd_nodes{ready="False",reason="SubnetExhausted",node="a"}': '3x60',
      'tke_eni_ipamd_nodes{ready="False",reason="SubnetExhausted",node="b"}': '3x60',
      'tke_eni_ipamd_nodes{ready="False",reason="CallUnderWay",node="a"}': '9x60',
      'tke_eni_ipamd_nodes{ready="True",reason="SupplyMet",node="a"}': '90x60',
    },
    atMinutes: 20,
    fires: 1,
  },
  {
    alert: 'TkeEniObjectsMended',
    when: 'it happened once, and there was no such series before',
    series: { 'tke_eni_ipamd_node_objects_mended_total{kind="drift"}': '_x29 1x60' },
    atMinutes: 35,
    fires: 1,
  },
  {
    alert: 'TkeEniObjectsMended',
    when: 'it was long ago',
    series: { 'tke_eni_ipamd_node_objects_mended_total{kind="drift"}': '_x29 1x60' },
    atMinutes: 50,
    fires: 0,
  },
  {
    alert: 'TkeEniAuditMissing',
    when: 'sweeps fail',
    series: {
      'tke_eni_ipamd_leader{node="a"}': '1x120',
      'tke_eni_ipamd_audits_total{outcome="SweepFailed"}': '0+1x120',
      'tke_eni_ipamd_audits_total{outcome="done"}': '7x120',
    },
    atMinutes: 110,
    fires: 1,
  },
  {
    alert: 'TkeEniAuditMissing',
    when: 'one of twelve sweeps goes well',
    series: {
      'tke_eni_ipamd_leader{node="a"}': '1x120',
      'tke_eni_ipamd_audits_total{outcome="done"}': '0x59 1x59 2x59',
    },
    atMinutes: 110,
    fires: 0,
  },
  {
    alert: 'TkeEniCloudErrors',
    when: 'an API fails half of the time',
    series: {
      'tke_eni_ipamd_cloud_calls_total{action="AssignPrivateIpAddresses",code="ok"}': '0+5x60',
      'tke_eni_ipamd_cloud_calls_total{action="AssignPrivateIpAddresses",code="InternalError"}': '0+5x60',
    },
    atMinutes: 40,
    fires: 1,
  },
  {
    alert: 'TkeEniCloudErrors',
    when: 'the cloud only throttles',
    series: {
      'tke_eni_ipamd_cloud_calls_total{action="AssignPrivateIpAddresses",code="ok"}': '0+5x60',
      'tke_eni_ipamd_cloud_calls_total{action="AssignPrivateIpAddresses",code="RequestLimitExceeded"}': '0+5x60',
    },
    atMinutes: 40,
    fires: 0,
  },
  {
    alert: 'TkeEniClaimsWaiting',
    when: 'a Pod waits for its address for half an hour, and another waits for a node',
    series: {
      'tke_eni_ipamd_claims{reason="AddressElsewhere",node="a"}': '1x60',
      'tke_eni_ipamd_claims{reason="PodUnscheduled",node="a"}': '1x60',
      'tke_eni_ipamd_claims{reason="AddressBound",node="a"}': '40x60',
    },
    atMinutes: 30,
    fires: 1,
  },
  {
    alert: 'TkeEniClaimsWaiting',
    when: 'Pods move for some minutes now and then',
    series: { 'tke_eni_ipamd_claims{reason="HandOver",node="a"}': '1x9 0 1x9 0 1x9 0 1x30' },
    atMinutes: 32,
    fires: 0,
  },
  {
    alert: 'TkeEniAddressTaken',
    when: 'somebody has one of two addresses',
    series: {
      'tke_eni_ipamd_claims{reason="AddressTaken",node="a"}': '1x60',
      'tke_eni_ipamd_leader{node="b"}': '0x60',
    },
    atMinutes: 10,
    fires: 1,
  },
  {
    alert: 'TkeEniClaimsDiffer',
    when: 'what a look found is gone with the next one',
    series: { 'tke_eni_ipamd_claim_differences{kind="in-cloud-only",node="a"}': '1x29 _x60' },
    atMinutes: 80,
    fires: 0,
  },
  {
    alert: 'TkeEniClaimsDiffer',
    when: 'differences stay',
    series: { 'tke_eni_ipamd_claim_differences{kind="in-cloud-only",node="a"}': '1x120' },
    atMinutes: 90,
    fires: 1,
  },
  {
    alert: 'TkeEniEipFailing',
    when: 'the quota of EIPs is used up, and it is tried every ten minutes',
    series: {
      'tke_eni_ipamd_cloud_calls_total{action="AllocateAddresses",code="AddressQuotaLimitExceeded"}':
        '1x9 2x9 3x9 4x9 5x9 6x9 7x9',
      'tke_eni_ipamd_cloud_calls_total{action="AllocateAddresses",code="ok"}': '7x60',
    },
    atMinutes: 45,
    fires: 1,
  },
  {
    alert: 'TkeEniEipFailing',
    when: 'the cloud throttles, and one Pod is refused once',
    series: {
      'tke_eni_ipamd_cloud_calls_total{action="AllocateAddresses",code="RequestLimitExceeded"}': '0+3x60',
      'tke_eni_ipamd_cloud_calls_total{action="AssociateAddress",code="InvalidAddressState"}': '_x20 1x60',
    },
    atMinutes: 30,
    fires: 0,
  },
  {
    alert: 'TkeEniSchedulerNoLeader',
    when: 'both replicas stand by',
    series: { 'tke_eni_ip_scheduler_leading{node="a"}': '0x60', 'tke_eni_ip_scheduler_leading{node="b"}': '0x60' },
    atMinutes: 5,
    fires: 1,
  },
  {
    alert: 'TkeEniSchedulerNoLeader',
    when: 'none is there any more',
    series: { 'tke_eni_ip_scheduler_leading{node="a"}': '1x60 _x60' },
    atMinutes: 80,
    fires: 1,
  },
  {
    alert: 'TkeEniSchedulerNoLeader',
    when: 'one leads and one stands by',
    series: { 'tke_eni_ip_scheduler_leading{node="a"}': '1x90', 'tke_eni_ip_scheduler_leading{node="b"}': '0x90' },
    atMinutes: 80,
    fires: 0,
  },
  { alert: 'TkeEniSchedulerNoLeader', when: 'it is not installed', series: { x: '1x90' }, atMinutes: 80, fires: 0 },
  {
    alert: 'TkeEniSchedulerRefusing',
    when: 'bindings fail',
    series: { 'tke_eni_ip_scheduler_requests_total{verb="bind",outcome="internal",node="a"}': '0+1x60' },
    atMinutes: 30,
    fires: 1,
  },
  {
    alert: 'TkeEniSchedulerRefusing',
    when: 'a standby is asked, and requests are given up',
    series: {
      'tke_eni_ip_scheduler_requests_total{verb="filter",outcome="STANDBY",node="b"}': '0+9x60',
      'tke_eni_ip_scheduler_requests_total{verb="filter",outcome="gone",node="a"}': '0+9x60',
    },
    atMinutes: 30,
    fires: 0,
  },
  {
    alert: 'TkeEniWebhookFailing',
    when: 'a review could not be answered now and then',
    series: { 'tke_eni_ip_webhook_requests_total{outcome="failed",node="a"}': '1x9 2x4 3x4 4x4 5x4 6x60' },
    atMinutes: 22,
    fires: 1,
  },
  {
    alert: 'TkeEniWebhookFailing',
    when: 'Pods are changed and left as they are',
    series: {
      'tke_eni_ip_webhook_requests_total{outcome="patched",node="a"}': '0+9x60',
      'tke_eni_ip_webhook_requests_total{outcome="unchanged",node="a"}': '0+9x60',
    },
    atMinutes: 30,
    fires: 0,
  },
  {
    alert: 'TkeEniCertificate',
    when: 'the certificate of one of two replicas ends in six days',
    series: {
      'tke_eni_ip_webhook_certificate_expiry_seconds{node="a"}': '518400x60',
      'tke_eni_ip_webhook_certificate_expiry_seconds{node="b"}': '31536000x60',
      'tke_eni_ip_webhook_certificate_problem{node="a"}': '0x60',
    },
    atMinutes: 20,
    fires: 1,
  },
  {
    alert: 'TkeEniCertificate',
    when: 'the files are replaced one after the other',
    series: {
      'tke_eni_ip_webhook_certificate_expiry_seconds{node="a"}': '31536000x60',
      'tke_eni_ip_webhook_certificate_problem{node="a"}': '0x9 1x2 0x60',
    },
    atMinutes: 20,
    fires: 0,
  },
  {
    alert: 'TkeEniCertificate',
    when: 'that of the extender has ended, and that of the webhook has not',
    series: {
      'tke_eni_ip_scheduler_certificate_expiry_seconds{job="tke-eni-ip-scheduler",node="a"}': '60x60',
      'tke_eni_ip_webhook_certificate_expiry_seconds{job="tke-eni-ip-webhook",node="a"}': '31536000x60',
    },
    atMinutes: 20,
    fires: 1,
  },
  {
    alert: 'TkeEniControllerManagerDown',
    when: 'one of two replicas is not scraped',
    series: {
      'up{job="tke-cloud-controller-manager",node="a"}': '1x5 0x60',
      'up{job="tke-cloud-controller-manager",node="b"}': '1x60',
    },
    atMinutes: 20,
    fires: 1,
  },
  {
    alert: 'TkeEniControllerManagerNoLeader',
    when: 'neither of two replicas leads',
    series: {
      'tke_cloud_controller_manager_leader{node="a"}': '1x5 0x60',
      'tke_cloud_controller_manager_leader{node="b"}': '0x60',
    },
    atMinutes: 10,
    fires: 1,
  },
  {
    alert: 'TkeEniControllerManagerNoLeader',
    when: 'it was never installed',
    series: { 'up{job="tke-eni-ipamd",node="a"}': '1x60' },
    atMinutes: 10,
    fires: 0,
  },
  {
    alert: 'TkeEniControllerManagerTwoLeaders',
    when: 'both lead by locks of different kinds',
    series: {
      'tke_cloud_controller_manager_leader{node="a"}': '1x60',
      'tke_cloud_controller_manager_leader{node="b"}': '0x5 1x60',
    },
    atMinutes: 10,
    fires: 1,
  },
  {
    alert: 'TkeEniControllerManagerRefused',
    when: 'a controller may not delete Nodes',
    series: {
      'tke_cloud_controller_manager_problem{kind="Forbidden",name="cloud-node-lifecycle-controller: delete nodes"}':
        '1x60',
    },
    atMinutes: 10,
    fires: 1,
  },
  {
    alert: 'TkeEniWebhookRules',
    when: 'its right to read them was taken away',
    series: { 'tke_eni_ip_webhook_static_ip_configs_followed{node="a"}': '1x9 0x60' },
    atMinutes: 25,
    fires: 1,
  },
];

for (const { alert, when, series, atMinutes, fires } of CASES) {
  run(`${alert}: ${fires === 0 ? 'is silent' : 'fires'} when ${when}`, (t) => {
    const folder = createTempDir('alerts');
    try {
      writeFileSync(folder.join('rules.yaml'), stringify(RULES.spec));
      const expr = `count(ALERTS{alertname="${alert}",alertstate="firing"}) or vector(0)`;
      const given = Object.entries(series).map(([name, values]) => ({ series: name, values }));
      const wanted = { expr, eval_time: `${atMinutes}m`, exp_samples: [{ value: fires }] };
      const rulesTest = {
        rule_files: ['rules.yaml'],
        evaluation_interval: '1m',
        tests: [{ interval: '1m', input_series: given, promql_expr_test: [wanted] }],
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
