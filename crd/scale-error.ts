/** Code of the product's answer when a zone has not enough addresses for the Pods of new nodes. */
export const SCALE_ERROR_CODE = -1_100_000;

/** Renders the product's answer, word for word, when a zone has not enough addresses for so many new nodes. */
export function renderScaleError(zone: string, nodes: number): string {
  const words = `Network scale error[IP for pods in Zone ${zone} is not enough to scale out ${nodes} nodes.]`;
  return `DashboardError,Code : ${SCALE_ERROR_CODE} , Msg : ${words}`;
}
