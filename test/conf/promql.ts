import { parser } from '@prometheus-io/lezer-promql';

/** A metric that an expression reads, with the labels that it matches. */
type Selector = { readonly metric: string; readonly labels: readonly string[] };

/** What a PromQL expression is made of. */
type PromqlFacts = {
  /** Where the text is no PromQL. */
  readonly faults: readonly string[];
  readonly selectors: readonly Selector[];
  /** Labels that aggregations keep, or that joins go by. */
  readonly grouping: readonly string[];
};

/** Reads one expression with Prometheus' own grammar. Never throws: faults are told with their place. */
export function readPromql(text: string): PromqlFacts {
  const faults: string[] = [];
  const selectors: { readonly metric: string; readonly labels: string[] }[] = [];
  const grouping: string[] = [];
  parser.parse(text).iterate({
    enter: ({ type, from, to, node }) => {
      const said = text.slice(from, to);
      if (type.isError) faults.push(`at ${from}: ${JSON.stringify(text.slice(Math.max(0, from - 10), to + 10))}`);
      if (type.name === 'VectorSelector') {
        const name = node.getChild('Identifier');
        selectors.push({ metric: name === null ? '' : text.slice(name.from, name.to), labels: [] });
      }
      if (type.name !== 'LabelName') return;
      if (node.parent?.name === 'GroupingLabels') grouping.push(said);
      else selectors.at(-1)?.labels.push(said);
    },
  });
  return { faults, selectors, grouping };
}
