import type { PanelRow } from './panel.ts';

/** Panels of kept addresses and EIPs, and of the two components that go with them. */
export const STATIC_ROWS: readonly PanelRow[] = [
  {
    title: 'Kept addresses, EIPs',
    panels: [
      {
        title: 'Claims by how they stand',
        kind: 'lines',
        width: 8,
        help: 'AddressBound and AddressRetained are at rest; the others should not stay. Reasons: docs/static-ip.md.',
        lines: [['max by (reason) (tke_eni_ipamd_claims)', '{{reason}}']],
      },
      {
        title: 'Differences between objects, nodes and cloud',
        kind: 'lines',
        width: 8,
        help: 'Good: 0.',
        lines: [['max by (kind) (tke_eni_ipamd_claim_differences)', '{{kind}}']],
      },
      {
        title: 'Calls for EIPs by code',
        kind: 'lines',
        unit: 'ops',
        width: 8,
        help: 'Codes: docs/cloud-calls.md.',
        lines: [
          [
            'sum by (action, code) (rate(tke_eni_ipamd_cloud_calls_total{action=~".*Address|(Allocate|Release|Describe)Addresses"}[$__rate_interval]))',
            '{{action}} {{code}}',
          ],
        ],
      },
    ],
  },
  {
    title: 'Scheduler extender',
    panels: [
      {
        title: 'Leaders',
        kind: 'number',
        width: 4,
        help: 'Replicas of the extender that lead. Good: 1; nothing where it is not installed.',
        lines: [['sum(tke_eni_ip_scheduler_leading)', '']],
      },
      {
        title: 'Requests of kube-scheduler by outcome',
        kind: 'lines',
        unit: 'ops',
        width: 8,
        help: 'STANDBY: no leader answered in time. Anything but ok and gone should be rare.',
        lines: [
          [
            'sum by (verb, outcome) (rate(tke_eni_ip_scheduler_requests_total[$__rate_interval]))',
            '{{verb}} {{outcome}}',
          ],
        ],
      },
      {
        title: 'Time of an answer (nine of ten)',
        kind: 'lines',
        unit: 's',
        width: 6,
        help: 'Filters wait for the claim of a new Pod: up to seconds; others take a millisecond.',
        lines: [
          [
            'histogram_quantile(0.9, sum by (le, verb) (rate(tke_eni_ip_scheduler_request_seconds_bucket[$__rate_interval])))',
            '{{verb}}',
          ],
        ],
      },
      {
        title: 'What it knows',
        kind: 'lines',
        width: 6,
        help: 'Objects by kind; reservations are places promised to Pods that were not seen bound.',
        lines: [['max by (kind) (tke_eni_ip_scheduler_index_objects)', '{{kind}}']],
      },
    ],
  },
  {
    title: 'Webhook',
    panels: [
      {
        title: 'The first certificate ends in',
        kind: 'number',
        unit: 's',
        width: 4,
        help: "Of the webhook's and the extender's replicas.",
        lines: [
          [
            'min(tke_eni_ip_webhook_certificate_expiry_seconds or tke_eni_ip_scheduler_certificate_expiry_seconds) - time()',
            '',
          ],
        ],
      },
      {
        title: 'Reviews by outcome',
        kind: 'lines',
        unit: 'ops',
        width: 10,
        help: 'patched and unchanged are good.',
        lines: [['sum by (outcome) (rate(tke_eni_ip_webhook_requests_total[$__rate_interval]))', '{{outcome}}']],
      },
      {
        title: 'Warnings given to clients that create Pods',
        kind: 'lines',
        unit: 'ops',
        width: 10,
        help: 'Annotations that cannot be read.',
        lines: [['sum(rate(tke_eni_ip_webhook_warnings_total[$__rate_interval]))', 'warnings']],
      },
    ],
  },
  {
    title: 'Cloud controller manager',
    panels: [
      {
        title: 'Leaders',
        kind: 'number',
        width: 4,
        help: 'One, where it is installed.',
        lines: [['sum(tke_cloud_controller_manager_leader)', '']],
      },
      {
        title: 'Controllers by state',
        kind: 'lines',
        width: 6,
        help: 'running on one replica, standby on the other; noRights: its role lacks something.',
        lines: [['sum by (controller, state) (tke_cloud_controller_manager_controller)', '{{controller}} {{state}}']],
      },
      {
        title: 'Time until a new Node is initialised (nine of ten)',
        kind: 'lines',
        unit: 's',
        width: 7,
        help: 'From its creation until its taint of the cloud provider is removed: seconds.',
        lines: [
          [
            'histogram_quantile(0.9, sum by (le) (rate(node_controller_cloud_provider_taint_removal_delay_seconds_bucket[$__rate_interval])))',
            'taint removed',
          ],
        ],
      },
      {
        title: 'Calls by action and code',
        kind: 'lines',
        unit: 'ops',
        width: 7,
        help: 'None while all Nodes are ready, but for addresses every five minutes.',
        lines: [
          [
            'sum by (action, code) (rate(tke_cloud_controller_manager_cloud_calls_total[$__rate_interval]))',
            '{{action}} {{code}}',
          ],
        ],
      },
      {
        title: 'Load balancers: orphans, drift that is left',
        kind: 'lines',
        width: 8,
        help: 'None. Orphans have no Service any more; drift is what others changed, with --load-balancer-drift=report.',
        lines: [
          ['max(tke_cloud_controller_manager_orphan_load_balancers)', 'orphans'],
          ['max by (field) (tke_cloud_controller_manager_load_balancer_drifts)', 'drift of {{field}}'],
        ],
      },
      {
        title: 'Load balancers: drift that was set again, orphans by outcome',
        kind: 'lines',
        width: 8,
        help: 'Changes by others, by field; what was done about load balancers without a Service.',
        lines: [
          [
            'sum by (field) (increase(tke_cloud_controller_manager_load_balancer_drifts_repaired_total[$__rate_interval]))',
            'drift of {{field}}',
          ],
          [
            'sum by (outcome) (increase(tke_cloud_controller_manager_orphan_load_balancer_outcomes_total[$__rate_interval]))',
            'orphan {{outcome}}',
          ],
        ],
      },
    ],
  },
];
