/** Renders a count with its noun: '1 Pod', '2 Pods', '0 addresses'. */
export function plural(count: number, noun: string): string {
  if (count === 1) return `1 ${noun}`;
  return `${count} ${noun}${noun.endsWith('s') ? 'es' : 's'}`;
}
