/** A port of a Service whose backends are targets. */
export type BackendPort = {
  /** '' when the only port has none. */
  readonly name: string;
  readonly protocol: 'TCP' | 'UDP' | 'SCTP';
  readonly port: number;
  /** Absent where node ports are not allocated. */
  readonly nodePort?: number;
};
