/**
 * How a listener checks its targets. A field that is absent in a description is not reported; in a creation it has the
 * cloud's default; in a change it stays as it is.
 */
export type HealthCheck = {
  /** False: every target counts as healthy. */
  readonly isOn?: boolean;
  /** TCP or HTTP, of a TCP listener and of a rule; PING, of a UDP listener; CUSTOM, of TCP and UDP. Others exist too. */
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
