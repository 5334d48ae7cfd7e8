//! Small trainable modules around the primitive.
