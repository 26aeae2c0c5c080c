/** What is drawn: a line over time, one number now, or a table of what is true now. */
type PanelKind = 'lines' | 'number' | 'table';

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
