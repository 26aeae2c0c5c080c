import type { CallContext } from './cloud.ts';
import type { LoadBalancerTask } from './load-balancers.ts';

/** Most ports of one creation. */
export const PORTS_PER_CREATION = 49;
/** Most listeners of one deletion. */
export const LISTENERS_PER_DELETION = 20;

/**
 * How a listener checks its targets. A field that is absent in a description is not reported; in a creation it has the
 * cloud's default; in a change it stays as it is.
 */
export type HealthCheck = {
  /** False: every target counts as healthy. */
  readonly isOn?: boolean;
  /** TCP or HTTP, of a TCP listener; PING, of a UDP listener; CUSTOM, of both. Others exist at other protocols. */
  readonly kind?: string;
  /** 2 to 300. */
  readonly intervalSeconds?: number;
  /** 2 to 60, and below the interval. */
  readonly timeoutSeconds?: number;
  /** So many good checks in a row make a target healthy: 2 to 10. */
  readonly healthyThreshold?: number;
  /** So many bad checks in a row make a target unhealthy: 2 to 10. */
  readonly unhealthyThreshold?: number;
  /** The port that is checked; `target`: that of the target. */
  readonly checkPort?: number | 'target';
  /** Where checks come from: the address of the load balancer, or 100.64.0.0/10. */
  readonly source?: 'vip' | 'shared-range';
  readonly http?: HttpCheck;
  /** What is sent and what has to come back, for the kind CUSTOM. */
  readonly exchange?: {
    readonly format: 'HEX' | 'TEXT';
    /** At most 500 characters each. */
    readonly send: string;
    readonly receive: string;
  };
};

/** What a check by HTTP asks for and accepts. */
type HttpCheck = {
  /** At most 200 characters. */
  readonly path?: string;
  /** The Host of the request, at most 80 characters; required on a TCP listener. */
  readonly domain?: string;
  readonly method?: 'HEAD' | 'GET';
  /** Required on a TCP listener. */
  readonly version?: 'HTTP/1.0' | 'HTTP/1.1';
  /** Bit mask of accepted answers: 1 for 1xx, 2 for 2xx, 4 for 3xx, 8 for 4xx, 16 for 5xx. */
  readonly codes?: number;
};

/** What of a listener can be changed; absent fields as in `HealthCheck`. */
export type ListenerSettings = {
  /** WRR (weighted round robin), LEAST_CONN, IP_HASH. */
  readonly scheduler?: string;
  /** How long a client keeps its target: 30 to 3,600, or 0 for not at all. */
  readonly sessionSeconds?: number;
  /** How long an idle connection is remembered: 10 to 1,980; the cloud has 900 for TCP and 300 for UDP. */
  readonly idleSeconds?: number;
  /** Whether clients of a target that is deregistered are reset, or rescheduled. Many accounts refuse it for UDP. */
  readonly resetsOnDeregister?: boolean;
  readonly healthCheck?: HealthCheck;
};

/** A listener of a load balancer. TCP and UDP may have the same port. */
export type Listener = ListenerSettings & {
  readonly listenerId: string;
  readonly name: string;
  /** TCP, UDP; of others also TCP_SSL, QUIC, HTTP, HTTPS. */
  readonly protocol: string;
  readonly port: number;
  /** Last port of a listener of a range. */
  readonly endPort?: number;
  /** Time of creation, milliseconds since the epoch; 0 when the cloud does not report it. */
  readonly createdAtMs: number;
};

/** New listeners with the same settings. */
export type ListenerSpec = {
  readonly protocol: 'TCP' | 'UDP';
  /** 1 to `PORTS_PER_CREATION`; names have 1 to 80 characters. */
  readonly ports: readonly { readonly port: number; readonly name: string }[];
  readonly settings: ListenerSettings;
};

/** Listeners of layer 4. Changes are as those of `LoadBalancerPort`, and settled there. */
export type ListenerPort = {
  /** Returns all listeners of a load balancer, of others too. @throws CloudError BAD_ANSWER when some are missing */
  list(loadBalancerId: string, context: CallContext): Promise<readonly Listener[]>;
  /**
   * Creates a listener for each port, all or none; the ids are in the order of the ports. @throws CloudError `quota` with
   * scope `listeners`; `never` with code InvalidParameter.PortCheckFailed when a port is taken
   */
  create(
    loadBalancerId: string,
    spec: ListenerSpec,
    context: CallContext,
  ): Promise<{ readonly listenerIds: readonly string[]; readonly task: LoadBalancerTask }>;
  /** Changes a listener; protocol and port stay. @throws CloudError `gone` when it does not exist */
  modify(
    loadBalancerId: string,
    listenerId: string,
    changes: ListenerSettings & { readonly name?: string },
    context: CallContext,
  ): Promise<LoadBalancerTask>;
  /**
   * Deletes listeners with their targets, 1 to `LISTENERS_PER_DELETION`, all or none. An empty list is refused with
   * BAD_REQUEST and not sent: the API would delete every listener. @throws CloudError `gone` when one does not exist
   */
  delete(loadBalancerId: string, listenerIds: readonly string[], context: CallContext): Promise<LoadBalancerTask>;
};
