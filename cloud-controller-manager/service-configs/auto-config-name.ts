/** Returns the name of the TkeServiceConfig that is made for a Service or an Ingress. It is the product's. */
export function autoConfigName(kind: 'service' | 'ingress', name: string): string {
  return `${name}-auto-${kind}-config`;
}

/** Tells whether a name is kept for configurations that are made. */
export function isAutoConfigName(name: string): boolean {
  return name.endsWith(autoConfigName('service', '')) || name.endsWith(autoConfigName('ingress', ''));
}
