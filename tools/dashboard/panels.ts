/** What is drawn: a line over time, one number now, or a table of what is true now. */
export type PanelKind = 'lines' | 'number' | 'table';

/** One panel: PromQL expressions with the name of each line. */
export type Panel = {
  readonly title: string;
  readonly kind: PanelKind;
  /** Grafana's name of the unit; none for plain numbers. */
  readonly unit?: 's' | 'ops' | 'bytes';
  /** Of 24. */
  readonly width: number;
  /** What an eye at night should know: what is good, where to look next. */
  readonly help: string;
  readonly lines: readonly (readonly [expression: string, legend: string])[];
};

/** Panels under one heading. */
export type PanelRow = { readonly title: string; readonly panels: readonly Panel[] };

/** All panels, in reading order: is it well, what waits, why, and then part by part. `$node` is chosen by the reader. */
export const PANEL_ROWS: readonly PanelRow[] = [
  {
    title: 'Is it well?',
    panels: [
      {
        title: 'Nodes that want addresses',
        kind: 'number',
        width: 4,
        help: 'NodeENIConfigs that are not Ready, calls under way and leaving nodes left out. Good: 0.',
        lines: [
          [
            'sum(max by (reason) (tke_eni_ipamd_nodes{ready="False",reason!~"CallUnderWay|Draining"})) or vector(0)',
            '',
          ],
        ],
      },
      {
        title: 'ADDs failed (5 min)',
        kind: 'number',
        width: 4,
        help: 'Pods that got no network at their first try, on all nodes.',
        lines: [['sum(increase(tke_eni_request_seconds_count{verb="add",code!="0"}[5m])) or vector(0)', '']],
      },
      {
        title: 'Agents up',
        kind: 'number',
        width: 4,
        help: 'Agents that are scraped. Compare with the number of nodes.',
        lines: [['sum(up{job="tke-eni-agent"})', '']],
      },
      {
        title: 'Leaders',
        kind: 'number',
        width: 4,
        help: 'Replicas of ipamd that lead. Good: 1.',
        lines: [['sum(tke_eni_ipamd_leader)', '']],
      },
      {
        title: 'Fewest free addresses of a subnet',
        kind: 'number',
        width: 4,
        help: 'As the cloud described it at last.',
        lines: [['min(tke_eni_ipamd_subnet_free_addresses)', '']],
      },
      {
        title: 'Oldest cloud call',
        kind: 'number',
        unit: 's',
        width: 4,
        help: 'Age of the oldest call on record. Above ten minutes something hangs.',
        lines: [['max(tke_eni_ipamd_intent_oldest_seconds) or vector(0)', '']],
      },
      {
        title: 'What is wrong now, as ipamd sees it',
        kind: 'table',
        width: 12,
        help: 'Kinds and cures: docs/ipamd.md, "Conditions, reasons, events".',
        lines: [['max by (kind, name) (tke_eni_ipamd_problem) > 0', '']],
      },
      {
        title: 'Alerts that fire',
        kind: 'table',
        width: 12,
        help: 'Each has a page in docs/runbooks/.',
        lines: [['max by (alertname, severity, node, reason) (ALERTS{alertname=~"TkeEni.*",alertstate="firing"})', '']],
      },
    ],
  },
  {
    title: 'Supply: nodes, addresses, subnets',
    panels: [
      {
        title: 'Nodes by reason',
        kind: 'lines',
        width: 8,
        help: 'SupplyMet is good; CallUnderWay comes and goes.',
        lines: [['max by (reason) (tke_eni_ipamd_nodes)', '{{reason}}']],
      },
      {
        title: 'Free addresses by subnet',
        kind: 'lines',
        width: 8,
        help: 'A subnet that nears 0 needs a second one in the ConfigMap.',
        lines: [['max by (subnet, zone) (tke_eni_ipamd_subnet_free_addresses)', '{{subnet}} {{zone}}']],
      },
      {
        title: 'Addresses and ENIs by state',
        kind: 'lines',
        width: 8,
        help: 'Of all nodes. Attaching and Releasing should not stay.',
        lines: [
          ['sum by (state) (max by (subnet, state) (tke_eni_ipamd_addresses))', 'address {{state}}'],
          ['sum by (state) (max by (subnet, state) (tke_eni_ipamd_enis))', 'ENI {{state}}'],
        ],
      },
      {
        title: 'Time until a new node is ready',
        kind: 'lines',
        unit: 's',
        width: 8,
        help: 'From the creation of its NodeENIConfig.',
        lines: [
          [
            'histogram_quantile(0.5, sum by (le) (rate(tke_eni_ipamd_node_warm_seconds_bucket[$__rate_interval])))',
            'half',
          ],
          [
            'histogram_quantile(0.9, sum by (le) (rate(tke_eni_ipamd_node_warm_seconds_bucket[$__rate_interval])))',
            'nine of ten',
          ],
        ],
      },
      {
        title: 'Calls on record by phase',
        kind: 'lines',
        width: 8,
        help: 'Unclear ones are being found out about.',
        lines: [['max by (action, phase) (tke_eni_ipamd_intents)', '{{action}} {{phase}}']],
      },
      {
        title: 'Orphans and drift',
        kind: 'lines',
        width: 8,
        help: 'Good: 0.',
        lines: [
          ['max(tke_eni_ipamd_orphan_enis)', 'orphaned ENIs'],
          ['max(tke_eni_ipamd_drifted_nodes)', 'nodes that differ from the cloud'],
        ],
      },
    ],
  },
  {
    title: 'Cloud',
    panels: [
      {
        title: 'Calls by action',
        kind: 'lines',
        unit: 'ops',
        width: 8,
        help: 'Attempts, refused ones included.',
        lines: [['sum by (action) (rate(tke_eni_ipamd_cloud_calls_total[$__rate_interval]))', '{{action}}']],
      },
      {
        title: 'Errors by code',
        kind: 'lines',
        unit: 'ops',
        width: 8,
        help: 'Codes: docs/cloud-calls.md.',
        lines: [
          [
            'sum by (action, code) (rate(tke_eni_ipamd_cloud_calls_total{code!="ok"}[$__rate_interval]))',
            '{{action}} {{code}}',
          ],
        ],
      },
      {
        title: 'Time of an attempt, and wait for its turn (nine of ten)',
        kind: 'lines',
        unit: 's',
        width: 8,
        help: 'A long wait with short attempts: our own pace holds back.',
        lines: [
          [
            'histogram_quantile(0.9, sum by (le, action) (rate(tke_eni_ipamd_cloud_call_seconds_bucket[$__rate_interval])))',
            '{{action}}',
          ],
          [
            'histogram_quantile(0.9, sum by (le) (rate(tke_eni_ipamd_cloud_wait_seconds_bucket[$__rate_interval])))',
            'wait',
          ],
        ],
      },
      {
        title: 'Pace that is allowed now',
        kind: 'lines',
        unit: 'ops',
        width: 8,
        help: 'Sinks when the cloud throttles, grows back within seconds.',
        lines: [['max by (product, action) (tke_eni_ipamd_cloud_rate_allowed)', '{{product}} {{action}}']],
      },
      {
        title: 'Calls that wait, breakers that are open',
        kind: 'lines',
        width: 8,
        help: 'An open breaker: the cloud refused, nobody asks for a while.',
        lines: [
          ['sum by (action) (tke_eni_ipamd_cloud_calls_waiting)', 'waits: {{action}}'],
          ['max by (kind) (tke_eni_ipamd_breakers_open)', 'open: {{kind}}'],
        ],
      },
      {
        title: 'Changes for nodes by outcome',
        kind: 'lines',
        unit: 'ops',
        width: 8,
        help: 'refused and unclear should be rare.',
        lines: [
          [
            'sum by (action, outcome) (rate(tke_eni_ipamd_node_calls_total[$__rate_interval]))',
            '{{action}} {{outcome}}',
          ],
        ],
      },
    ],
  },
  {
    title: 'Pods: what agents serve',
    panels: [
      {
        title: 'Calls by verb and code',
        kind: 'lines',
        unit: 'ops',
        width: 8,
        help: 'Code 0 is success; others: docs/errors.md.',
        lines: [
          [
            'sum by (verb, code) (rate(tke_eni_request_seconds_count{node=~"$node"}[$__rate_interval]))',
            '{{verb}} {{code}}',
          ],
        ],
      },
      {
        title: 'ADD by phase (nine of ten)',
        kind: 'lines',
        unit: 's',
        width: 8,
        help: 'allocate: waits for addresses; queue: many at once; record: the journal; netlink, verify: the kernel.',
        lines: [
          [
            'histogram_quantile(0.9, sum by (le, phase) (rate(tke_eni_add_phase_seconds_bucket{node=~"$node"}[$__rate_interval])))',
            '{{phase}}',
          ],
        ],
      },
      {
        title: 'Pool by state',
        kind: 'lines',
        width: 8,
        help: 'No free ones for long: Pods wait, or reuse addresses that still cool.',
        lines: [
          ['sum by (state) (tke_eni_pool_addresses{node=~"$node"})', '{{state}}'],
          ['sum(tke_eni_offered_addresses{node=~"$node"})', 'offered back'],
        ],
      },
      {
        title: 'Nodes without a free address',
        kind: 'lines',
        width: 8,
        help: 'Nodes whose pool has addresses, and none free.',
        lines: [
          [
            'count(sum by (node) (tke_eni_pool_addresses) unless sum by (node) (tke_eni_pool_addresses{state="free"})) or vector(0)',
            'nodes',
          ],
          [
            'sum(rate(tke_eni_forced_reuse_total{node=~"$node"}[$__rate_interval]))',
            'cooldowns cut short, each second',
          ],
        ],
      },
      {
        title: 'ENIs of nodes',
        kind: 'lines',
        width: 8,
        help: 'missing: in the supply, and not set up.',
        lines: [['sum by (state) (tke_eni_enis{node=~"$node"})', '{{state}}']],
      },
      {
        title: 'Attachments',
        kind: 'lines',
        width: 8,
        help: 'Leases that agents keep, and spooled DELs that are not done.',
        lines: [
          ['sum(tke_eni_leases{node=~"$node"})', 'leases'],
          ['sum(tke_eni_spool_pending{node=~"$node"})', 'spooled DELs'],
          ['sum(rate(tke_eni_collected_total{node=~"$node"}[$__rate_interval]))', 'collected, each second'],
        ],
      },
    ],
  },
  {
    title: 'Repair: the kernel as it should be',
    panels: [
      {
        title: 'Differences found',
        kind: 'lines',
        unit: 'ops',
        width: 8,
        help: 'Somebody else changes rules, routes or links.',
        lines: [['sum by (kind) (rate(tke_eni_drift_total{node=~"$node"}[$__rate_interval]))', '{{kind}}']],
      },
      {
        title: 'Fights and conflicts',
        kind: 'lines',
        width: 8,
        help: 'Good: 0. A fight: repair is undone again and again. A conflict: our place is taken.',
        lines: [
          ['sum by (node) (tke_eni_fights{node=~"$node"}) > 0', 'fight {{node}}'],
          ['sum by (node) (tke_eni_conflicts{node=~"$node"}) > 0', 'conflict {{node}}'],
        ],
      },
      {
        title: 'Passes by cause',
        kind: 'lines',
        unit: 'ops',
        width: 8,
        help: 'Looks at the whole node; mostly timer.',
        lines: [
          ['sum by (trigger) (rate(tke_eni_repair_passes_total{node=~"$node"}[$__rate_interval]))', '{{trigger}}'],
        ],
      },
    ],
  },
  {
    title: 'API server and processes',
    panels: [
      {
        title: 'Silence of the API server (worst)',
        kind: 'lines',
        unit: 's',
        width: 8,
        help: 'Above 300 s: look at the API server. Nodes go on from their journals.',
        lines: [
          ['max(tke_eni_api_server_silence_seconds{node=~"$node"})', 'agents'],
          ['max by (resource) (tke_eni_ipamd_informer_age_seconds)', 'ipamd {{resource}}'],
        ],
      },
      {
        title: 'Writes of NodeENIConfigs',
        kind: 'lines',
        unit: 'ops',
        width: 8,
        help: 'conflicts are everyday life, failures are not.',
        lines: [
          [
            'sum by (outcome) (rate(tke_eni_publications_total{node=~"$node"}[$__rate_interval]))',
            'agents {{outcome}}',
          ],
          ['sum by (result) (rate(tke_eni_ipamd_node_writes_total[$__rate_interval]))', 'ipamd {{result}}'],
        ],
      },
      {
        title: 'ipamd: keys that wait, and workers',
        kind: 'lines',
        width: 8,
        help: 'A queue that only grows: the cloud or the API server is slow.',
        lines: [
          ['max by (queue) (tke_eni_ipamd_queue_length)', 'waiting {{queue}}'],
          ['max by (queue) (tke_eni_ipamd_queue_running)', 'running {{queue}}'],
        ],
      },
      {
        title: 'Memory',
        kind: 'lines',
        unit: 'bytes',
        width: 12,
        help: 'An agent has some 105 MiB, ipamd up to 150 MiB with 1,000 nodes.',
        lines: [
          ['max(process_resident_memory_bytes{job="tke-eni-agent",node=~"$node"})', 'largest agent'],
          ['max by (node) (tke_eni_ipamd_resident_memory_bytes)', 'ipamd on {{node}}'],
        ],
      },
      {
        title: 'CPU',
        kind: 'lines',
        width: 12,
        help: 'Cores.',
        lines: [
          [
            'max(rate(process_cpu_seconds_total{job="tke-eni-agent",node=~"$node"}[$__rate_interval]))',
            'busiest agent',
          ],
          ['max by (node) (rate(tke_eni_ipamd_cpu_seconds[$__rate_interval]))', 'ipamd on {{node}}'],
        ],
      },
    ],
  },
];
